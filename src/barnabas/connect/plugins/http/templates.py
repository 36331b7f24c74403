"""Texts with places: `https://a.example/items?since=${offset.since}`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

_PLACE = re.compile(r"\$\{([^}:]+)\}")


def names_of(template: str) -> list[str]:
    """The names of the places."""
    return _PLACE.findall(template)


def filled(template: str, values: Callable[[str], Any] | Mapping[str, Any], escape: Callable[[Any], str]) -> str:
    """The text with the values of its places."""
    find = values.get if isinstance(values, Mapping) else values
    return _PLACE.sub(lambda match: escape(find(match[1])), template)


def for_url(value: Any) -> str:
    """A value as a part of a URL."""
    return quote(plain_text(value), safe="")


def for_json(value: Any) -> str:
    """A value inside of a JSON text: with the escapes of a string, without its quotation marks."""
    text = plain_text(value)
    return json.dumps(text)[1:-1]


def plain_text(value: Any) -> str:
    """A value as text; nothing for null."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value)


def at_pointer(document: Any, pointer: str) -> Any:
    """What a JSON pointer (RFC 6901) names; None if it is not there."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(name)
        elif isinstance(document, list) and name.isdecimal() and int(name) < len(document):
            document = document[int(name)]
        else:
            return None
    return document
