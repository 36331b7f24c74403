"""Variables of the shell, as psql has them: `:name` is replaced by the value, `:'name'` by a literal of it, `:"name"` by a name.

A variable that is not set stays as it is, because `a[1:n]` looks the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from barnabas.cli.errors import BadInput
from barnabas.cli.sql.scanner import Kind, tokens

_NAME = re.compile(r"[^\W\d]\w*")


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with the values of its variables."""
    if not values or ":" not in text:
        return text
    parts, at = [], 0
    for token in tokens(text):
        if token.kind is Kind.VARIABLE:
            parts += [text[at : token.start], _value(text[token.start + 1 : token.end], values)]
            at = token.end
    return "".join(parts) + text[at:]


def _value(name: str, values: Mapping[str, str]) -> str:
    quote = name[0] if name[0] in "'\"" else ""
    found = values.get(name.strip("'\""))
    if found is None:
        return f":{name}"
    return f"{quote}{found.replace(quote, quote * 2)}{quote}" if quote else found


def checked_name(name: str) -> str:
    """A name that a variable can have; raises BadInput."""
    if not _NAME.fullmatch(name):
        raise BadInput(f"{name!r} is not the name of a variable: letters, digits and _")
    return name
