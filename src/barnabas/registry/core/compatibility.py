"""Whether a schema may follow others, by the compatibility level, with Confluent's messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.registry.core.entities import Draft, Json, Version, property_of
from barnabas.registry.formats.interface import ParsedSchema

RESERVED = "confluent:reserved"
SHOWN_CHARACTERS = 10 * 1024  # characters of an old schema in a message; the same limit as in Confluent's registry
OTHER_TYPE = "Incompatible because of different schema type"


def problems(
    config: Json, draft: Draft, parsed: ParsedSchema, earlier: Sequence[Version], parse: Callable[[Version], ParsedSchema]
) -> list[str]:
    """The reasons why `parsed` may not follow `earlier` (oldest first); empty if it may. Only those of the newest failing
    version."""
    level = str(config["compatibilityLevel"]).upper()
    lenient = str(config.get("compatibilityPolicy")).upper() == "LENIENT"
    checks_fields = bool(config.get("validateFields"))
    found = _reserved(draft, parsed, earlier[-1].draft if earlier else None) if checks_fields else []
    group = config.get("compatibilityGroup")
    if group is not None:
        wanted = property_of(draft.metadata, group)
        earlier = [each for each in earlier if property_of(each.draft.metadata, group) == wanted]
    if level != "NONE" and earlier:
        for version in reversed(earlier if level.endswith("_TRANSITIVE") else earlier[-1:]):
            messages = _between(level, parsed, version, parse, lenient=lenient)
            if messages:
                found += messages
                break
    if found:
        found.append(f"{{validateFields: '{str(checks_fields).lower()}', compatibility: '{level}'}}")
    return found


def _between(
    level: str, parsed: ParsedSchema, version: Version, parse: Callable[[Version], ParsedSchema], *, lenient: bool
) -> list[str]:
    """The messages of one pair. As in Confluent's registry, a full level names the old schema only if the new one cannot read
    its data."""
    if version.draft.schema_type != parsed.schema_type:
        return [OTHER_TYPE]
    old = parse(version)
    by_old = [] if level.startswith("BACKWARD") else old.unreadable(parsed, lenient=lenient)
    by_new = [] if level.startswith("FORWARD") else parsed.unreadable(old, lenient=lenient)
    found = [each.read_by_old().text for each in by_old] + [each.text for each in by_new]
    if by_new or (by_old and level.startswith("FORWARD")):
        found += [f"{{oldSchemaVersion: {version.version}}}", _shown(version.draft.schema)]
    return found


def _shown(text: str) -> str:
    if len(text) <= SHOWN_CHARACTERS:
        return f"{{oldSchema: '{text}'}}"
    return f"{{oldSchema: <truncated> '{text[:SHOWN_CHARACTERS]}...'}}"


def _reserved(draft: Draft, parsed: ParsedSchema, before: Draft | None) -> list[str]:
    fields, old = _reserved_fields(draft), _reserved_fields(before)
    removed = [
        f"The new schema has reserved field {name} removed from its metadata which is present in the old schema's metadata."
        for name in old
        if name not in fields
    ]
    taken = [
        f"The new schema has field that conflicts with the reserved field {name}."
        for name in fields
        if parsed.has_top_level_field(name)
    ]
    return removed + taken


def _reserved_fields(draft: Draft | None) -> list[str]:
    text = None if draft is None else property_of(draft.metadata, RESERVED)
    return [name.strip() for name in (text or "").split(",") if name.strip()]
