"""Drafts from the JSON of clients: parses and checks requests to register, look up or check a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.registry.core import errors, rule_sets
from barnabas.registry.core.entities import Draft, Json
from barnabas.registry.formats.interface import Reference
from barnabas.web.routing import HttpError

LARGEST = 2**31 - 1


def draft_from(body: Json) -> Draft:
    """The schema of a request.

    Raises:
        HttpError: 422 for a part of a wrong type.
    """
    text, kind = body.get("schema"), body.get("schemaType")
    if isinstance(text, bool) or not (text is None or isinstance(text, str | int | float)):
        raise wrong("schema", "a string")
    references = body.get("references") or ()
    if not isinstance(references, list | tuple):
        raise wrong("references", "a list")
    return Draft(
        "" if text is None else str(text),
        str(kind or "AVRO").upper(),
        tuple(map(_reference, references)),
        metadata_of(body, "metadata"),
        rule_set_of(body, "ruleSet"),
    )


def metadata_of(body: Mapping[str, Any], name: str) -> Json | None:
    """The metadata of a request: sorted, and without empty parts. Raises HttpError 422."""
    value = _object(body, name)
    if value is None:
        return None
    made: Json = {}
    for part in ("tags", "properties"):
        items = sorted((_object(value, part) or {}).items())
        if part == "tags":
            made[part] = {path: sorted(texts(tags, f"{name}.{part}")) for path, tags in items}
        else:
            made[part] = {key: rule_sets.text(item) for key, item in items if item is not None}
    made["sensitive"] = sorted(texts(value.get("sensitive") or [], f"{name}.sensitive"))
    return {part: found for part, found in made.items() if found}


def rule_set_of(body: Mapping[str, Any], name: str) -> Json | None:
    """The rule set of a request in the stored form. Raises HttpError 422."""
    value = _object(body, name)
    return None if value is None else rule_sets.normal(value)


def integer(body: Mapping[str, Any], name: str, default: int) -> int:
    """A number in a request. Raises HttpError 422."""
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


def _object(body: Mapping[str, Any], name: str) -> Json | None:
    value = body.get(name)
    if value is not None and not isinstance(value, dict):
        raise wrong(name, "an object")
    return value


def texts(value: object, name: str) -> list[str]:
    """The strings in a list, without duplicates, in their order. Raises HttpError 422."""
    if not isinstance(value, list):
        raise wrong(name, "a list")
    return list(dict.fromkeys(rule_sets.text(item) for item in value))


def wrong(name: str, expected: str) -> HttpError:
    """The error for a field of a wrong type."""
    return HttpError(422, f"Invalid value of {name}: it is {expected}", 422)


def _reference(item: object) -> Reference:
    if not isinstance(item, dict):
        raise wrong("references", "a list of objects")
    name, subject = item.get("name"), item.get("subject")
    if not isinstance(name, str) or not isinstance(subject, str) or not name or not subject:
        raise errors.invalid_schema(f"Invalid schema reference: name '{name}', subject '{subject}'")
    return Reference(name, subject, integer(item, "version", -1))
