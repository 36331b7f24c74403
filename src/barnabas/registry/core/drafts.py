"""Drafts from the JSON of clients: what may stand in a request to register, look up or check a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.registry.core import errors
from barnabas.registry.core.entities import Draft, Json
from barnabas.registry.formats.interface import Reference
from barnabas.web.routing import HttpError

LARGEST = 2**31 - 1


def draft_from(body: Json) -> Draft:
    """The schema of a request.

    Raises:
        HttpError: 422 for a part of another type than it should have.
    """
    text, kind = body.get("schema"), body.get("schemaType")
    if isinstance(text, bool) or not (text is None or isinstance(text, str | int | float)):
        raise wrong("schema", "a string")
    metadata, rule_set = body.get("metadata"), body.get("ruleSet")
    for name, value in (("metadata", metadata), ("ruleSet", rule_set)):
        if value is not None and not isinstance(value, dict):
            raise wrong(name, "an object")
    references = body.get("references") or ()
    if not isinstance(references, list | tuple):
        raise wrong("references", "a list")
    return Draft(
        "" if text is None else str(text), str(kind or "AVRO").upper(), tuple(map(_reference, references)), metadata, rule_set
    )


def integer(body: Mapping[str, Any], name: str, default: int) -> int:
    """A number of a request. Raises HttpError 422."""
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise wrong(name, "a number")
    try:
        found = int(value)
    except ValueError:
        raise wrong(name, "a number") from None
    if not -LARGEST <= found <= LARGEST:
        raise wrong(name, "a number of 32 bits")
    return found


def wrong(name: str, expected: str) -> HttpError:
    """The answer to a field of another type."""
    return HttpError(422, f"Invalid value of {name}: it is {expected}", 422)


def _reference(item: object) -> Reference:
    if not isinstance(item, dict):
        raise wrong("references", "a list of objects")
    name, subject = item.get("name"), item.get("subject")
    if not isinstance(name, str) or not isinstance(subject, str) or not name or not subject:
        raise errors.invalid_schema(f"Invalid schema reference: name '{name}', subject '{subject}'")
    return Reference(name, subject, integer(item, "version", -1))
