"""Documents of jsonb in Postgres' text format: short keys first, and a space behind each comma and colon."""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import Any


class _Number(str):
    """The digits of a number, as they were written."""


_DECODER = json.JSONDecoder(parse_float=_Number, parse_int=_Number)


def document(value: str) -> bytes:
    """A document; a text that is none stays as it is."""
    if not value.lstrip().startswith(("{", "[")):
        return value.strip().encode(errors="surrogatepass")
    try:
        return _text(_DECODER.decode(value)).encode(errors="surrogatepass")
    except (ValueError, RecursionError):
        return value.encode(errors="surrogatepass")


def _text(value: Any) -> str:
    match value:
        case _Number():
            return value
        case str():
            return encode_basestring(value)
        case dict():
            keys = sorted(value, key=lambda each: (len(each.encode(errors="surrogatepass")), each))
            return "{" + ", ".join(f"{encode_basestring(each)}: {_text(value[each])}" for each in keys) + "}"
        case list():
            return "[" + ", ".join(map(_text, value)) + "]"
    return "null" if value is None else "true" if value is True else "false" if value is False else str(value)
