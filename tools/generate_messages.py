"""Write `src/barnabas/protocol/messages/` from the protocol definitions in the kio package, and from those of earlier versions.

kio has one dataclass for each message and version of Kafka 4. The additional versions of Kafka 3.9 are in
`tools/dropped_versions.json`. This program merges the versions of a message into one class. Each field has its versions, so the
code above the protocol has one type for all versions of clients.

The index and `ApiKey` name every API of Kafka. The APIs of `NAMED_ONLY` get no classes.

Run as `python tools/generate_messages.py`; a test checks that the files are up to date.
"""

from __future__ import annotations

import argparse
import dataclasses
import keyword
import subprocess
import sys
import types
import typing
import uuid
from collections.abc import Iterator
from datetime import timedelta
from graphlib import TopologicalSorter
from pathlib import Path

from kio.index import load_entity_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType
from kio.static.protocol import Entity

from barnabas.protocol.base_message import OPEN_END, FieldSpec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools.dropped_versions import load

DROPPED = load()
TARGET = Path(__file__).resolve().parent.parent / "src" / "barnabas" / "protocol" / "messages"
DATA_MESSAGES = ("consumer_protocol_assignment", "consumer_protocol_subscription")
NAMED_ONLY = frozenset(
    {
        # between KRaft servers
        "vote", "begin_quorum_epoch", "end_quorum_epoch", "fetch_snapshot", "broker_registration", "controller_registration",
        "assign_replicas_to_dirs", "add_raft_voter", "remove_raft_voter", "update_raft_voter",
        # share groups
        "share_group_heartbeat", "share_group_describe", "share_fetch", "share_acknowledge", "initialize_share_group_state",
        "read_share_group_state", "write_share_group_state", "delete_share_group_state", "read_share_group_state_summary",
        "describe_share_group_offsets", "alter_share_group_offsets", "delete_share_group_offsets",
        # streams groups, and client metrics
        "streams_group_heartbeat", "streams_group_describe", "get_telemetry_subscriptions", "push_telemetry",
    }
)  # fmt: skip

PYTHON_TYPES = {
    "bool": "bool", "int8": "int", "int16": "int", "int32": "int", "int64": "int", "uint16": "int", "uint32": "int",
    "float64": "float", "string": "str", "bytes": "bytes", "uuid": "UUID", "records": "Buffer",
}  # fmt: skip
IMPLICIT_DEFAULTS = {"bool": "False", "float64": "0.0", "string": '""', "bytes": 'b""', "uuid": "ZERO_UUID", "records": "None"}
WIRE_TYPES = {"error_code": "int16", "timedelta_i32": "int32", "timedelta_i64": "int64", "datetime_i64": "int64"}


@dataclasses.dataclass
class FieldFacts:
    name: str
    wire_type: str  # "struct" for a nested message
    is_array: bool
    tag: int | None
    item: str | None
    versions: list[int] = dataclasses.field(default_factory=list)
    nullable: list[int] = dataclasses.field(default_factory=list)
    default: str | None = None


@dataclasses.dataclass
class ClassFacts:
    name: str
    fields: dict[str, FieldFacts] = dataclasses.field(default_factory=dict)
    order: dict[str, list[str]] = dataclasses.field(default_factory=dict)  # field -> fields before it
    versions: list[int] = dataclasses.field(default_factory=list)
    flexible: list[int] = dataclasses.field(default_factory=list)

    def sorted_fields(self) -> list[FieldFacts]:
        return [self.fields[n] for n in TopologicalSorter(self.order).static_order()]


def unfold(annotation: typing.Any) -> tuple[typing.Any, bool, bool]:
    """The element type of an annotation, whether it is an array and whether null is allowed."""
    nullable = array = False
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        nullable = True
        (annotation,) = (a for a in typing.get_args(annotation) if a is not type(None))
    if typing.get_origin(annotation) is tuple:
        array = True
        annotation = typing.get_args(annotation)[0]
    return annotation, array, nullable


def render_default(field: dataclasses.Field[object], wire_type: str, *, is_array: bool) -> str | None:
    value = field.default
    if value is dataclasses.MISSING or dataclasses.is_dataclass(value):
        return None
    if isinstance(value, timedelta):
        return str(round(value.total_seconds() * 1000))
    if value is None and is_array:
        return "None"
    if value is None:
        return {"uuid": "ZERO_UUID", "int64": "-1"}.get(wire_type, "None")
    if isinstance(value, uuid.UUID):
        return "ZERO_UUID"
    if isinstance(value, tuple):
        return "()"
    if isinstance(value, bool):
        return repr(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return repr(float(value))
    return '"' + str(value) + '"' if isinstance(value, str) else repr(value)


def collect(schema: type[Entity], version: int, known: dict[str, ClassFacts]) -> str:
    facts = known.setdefault(schema.__name__, ClassFacts(schema.__name__))
    if version in facts.versions:  # two fields of the message have this class
        return schema.__name__
    facts.versions.append(version)
    if schema.__flexible__:
        facts.flexible.append(version)
    hints = typing.get_type_hints(schema)
    previous: str | None = None
    for field in dataclasses.fields(schema):
        element, is_array, nullable = unfold(hints[field.name])
        kafka_type = field.metadata.get("kafka_type", "struct")
        wire_type = WIRE_TYPES.get(kafka_type, kafka_type)
        item = collect(element, version, known) if wire_type == "struct" else None
        name = field.name + ("_ms" if kafka_type.startswith(("timedelta", "datetime")) else "")
        name += "_" if keyword.iskeyword(name) else ""
        found = facts.fields.setdefault(name, FieldFacts(name, wire_type, is_array, field.metadata.get("tag"), item))
        if (found.wire_type, found.is_array, found.tag) != (wire_type, is_array, field.metadata.get("tag")):
            raise SystemExit(f"{schema.__name__}.{name} changes its type between versions")
        found.versions.append(version)
        if nullable and wire_type not in {"uuid", "int64"}:
            found.nullable.append(version)
        found.default = render_default(field, wire_type, is_array=is_array) or found.default
        before = facts.order.setdefault(name, [])
        if previous is not None and previous not in before:
            before.append(previous)
        previous = name
    return schema.__name__


def collect_dropped(classes: dict[str, list[typing.Any]], count: int, known: dict[str, ClassFacts]) -> None:
    """The fields of a message in its first `count` versions."""
    for class_name, fields in classes.items():
        facts = known[class_name] = ClassFacts(class_name)
        starts = [first for _, _, _, first, *_ in fields]
        facts.versions += range(min(starts, default=0), count)
        previous: str | None = None
        for name, wire_type, is_array, first, last, first_nullable, last_nullable, default, item in fields:
            found = facts.fields[name] = FieldFacts(name, wire_type, is_array, None, item, default=default)
            found.versions += range(first, last + 1)
            found.nullable += [] if first_nullable is None else range(max(first, first_nullable), last_nullable + 1)
            facts.order[name] = [] if previous is None else [previous]
            previous = name


def first_version(name: str) -> int:
    return 0 if name in DROPPED else min(schema_name_map[name])


def version_range(versions: list[int], newest: int) -> tuple[int, int]:
    if versions != list(range(versions[0], versions[-1] + 1)):
        raise SystemExit(f"versions with a hole: {versions}")
    return versions[0], OPEN_END if versions[-1] == newest else versions[-1]


def render_class(facts: ClassFacts, newest: int) -> Iterator[str]:
    fields = facts.sorted_fields()
    yield f"class {facts.name}(Message):"
    yield f"    __slots__ = ({''.join(f'{f.name!r}, ' for f in fields)})".replace("'", '"').replace(", )", ",)")
    flexible = min(facts.flexible, default=OPEN_END)
    yield f"    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = {min(facts.versions)}, {max(facts.versions)}, {flexible}"
    yield "    FIELDS: ClassVar[tuple[FieldSpec, ...]] = ("
    for f in fields:
        yield f"        {field_spec(f, newest)},"
    yield "    )"
    if not fields:
        return
    yield ""
    yield "    def __init__(self, *, " + ", ".join(parameter(f) for f in fields) + ") -> None:"
    for f in fields:
        value = f.name
        if f.wire_type == "struct" and not f.is_array and f.default is None and not f.nullable:
            value = f"{f.item}() if {f.name} is None else {f.name}"
        yield f"        self.{f.name}{attribute_type(f)} = {value}"


def field_spec(f: FieldFacts, newest: int) -> str:
    """The call that creates the field, with the arguments that differ from the defaults of `FieldSpec`."""
    first, last = version_range(f.versions, newest)
    first_nullable, last_nullable = version_range(f.nullable, newest) if f.nullable else (OPEN_END, OPEN_END)
    values = {
        "is_array": f.is_array,
        "first_version": first,
        "last_version": last,
        "first_nullable_version": first_nullable,
        "last_nullable_version": last_nullable,
        "tag": f.tag,
        "item": f.item,
    }
    named = [f"{name}={value}" for name, value in values.items() if value != FieldSpec._field_defaults[name]]
    return "FieldSpec(" + ", ".join([f'"{f.name}"', f'"{f.wire_type}"', *named]) + ")"


def element_type(f: FieldFacts) -> str:
    return f.item or PYTHON_TYPES[f.wire_type]


def attribute_type(f: FieldFacts) -> str:
    nullable = bool(f.nullable) or f.wire_type == "records" or (f.is_array and f.default == "None")
    base = f"Sequence[{element_type(f)}]" if f.is_array else element_type(f)
    return f": {base}{' | None' if nullable else ''}"


def parameter(f: FieldFacts) -> str:
    base = f"Sequence[{element_type(f)}]" if f.is_array else element_type(f)
    default = f.default
    if default is None:
        default = "()" if f.is_array else "None" if f.wire_type == "struct" else IMPLICIT_DEFAULTS.get(f.wire_type, "0")
    return f"{f.name}: {base}{' | None' if f.nullable or default == 'None' else ''} = {default}"


def disambiguate(request: dict[str, ClassFacts], response: dict[str, ClassFacts]) -> None:
    """One module holds both directions; a nested name that both use gets its direction as a prefix."""
    for name in set(request) & set(response):
        for direction, classes in (("Request", request), ("Response", response)):
            facts = classes[name]
            facts.name = direction + name
            for other in classes.values():
                for f in other.fields.values():
                    if f.item == name:
                        f.item = facts.name


def bottom_up(known: dict[str, ClassFacts]) -> list[ClassFacts]:
    """The classes in an order in which the items of each class come before it."""
    by_name = {facts.name: facts for facts in known.values()}
    uses = {facts.name: [f.item for f in facts.fields.values() if f.item] for facts in known.values()}
    return [by_name[name] for name in TopologicalSorter(uses).static_order()]


def render_module(name: str, api_key: int | None) -> str:
    versions = sorted(schema_name_map[name])
    kinds = (EntityType.request, EntityType.response) if api_key is not None else (EntityType.data,)
    groups: list[dict[str, ClassFacts]] = []
    roots: list[str] = []
    for kind in kinds:
        known: dict[str, ClassFacts] = {}
        if name in DROPPED:
            collect_dropped(DROPPED[name][kind.name], versions[0], known)
        for version in versions:
            root = collect(load_entity_schema(name, version, kind), version, known)  # type: ignore[arg-type]  # `kind` is one of the kinds that kio can load
        groups.append(known)
        roots.append(root)
    if len(groups) == 2:
        disambiguate(*groups)
    body: list[str] = []
    for known in groups:
        for facts in bottom_up(known):
            body += ["", "", *render_class(facts, versions[-1])]
    text = "\n".join(body)
    lines = [f'"""{" and ".join(roots)}. Written by tools/generate_messages.py; do not edit."""', ""]
    lines += ["from __future__ import annotations", ""]
    lines += ["from collections.abc import Sequence"] if "Sequence[" in text else []
    lines += ["from typing import ClassVar"]
    lines += (
        ["from uuid import UUID"] if "UUID =" in text.replace("ZERO_UUID =", "") or ": UUID" in text or "[UUID" in text else []
    )
    names = ["FieldSpec", "Message"] + (["Buffer"] if "Buffer" in text else []) + (["ZERO_UUID"] if "ZERO_UUID" in text else [])
    lines += ["", f"from barnabas.protocol.base_message import {', '.join(sorted(names, key=lambda n: (not n.isupper(), n)))}"]
    return "\n".join(lines) + text + "\n"


def render_index() -> str:
    lines = [
        '"""Every message the protocol knows, by API key. Written by tools/generate_messages.py; do not edit."""',
        "",
        "# API key: (module, class prefix, first version, last version, first flexible version)",
        "APIS: dict[int, tuple[str, str, int, int, int]] = {",
    ]
    for key, name in sorted(api_key_map.items()):
        versions = sorted(schema_name_map[name])
        schemas = {v: load_entity_schema(name, v, EntityType.request) for v in versions}
        flexible = min((v for v, s in schemas.items() if s.__flexible__), default=OPEN_END)
        prefix = schemas[versions[0]].__name__.removesuffix("Request")
        lines.append(f'    {key}: ("{name}", "{prefix}", {first_version(name)}, {versions[-1]}, {flexible}),')
    lines += [
        "}",
        "",
        "# API key: the first version that Kafka 4 serves, for the APIs of which Kafka 3.9 serves older versions",
        "FIRST_VERSIONS_OF_KAFKA_4: dict[int, int] = {",
        *(f"    {key}: {min(schema_name_map[name])}," for key, name in sorted(api_key_map.items()) if name in DROPPED),
        "}",
    ]
    return "\n".join([*lines, ""])


def render_keys() -> str:
    lines = [
        '"""The names and numbers of APIs. Written by tools/generate_messages.py; do not edit."""',
        "",
        "from enum import IntEnum",
        "",
        "",
        "class ApiKey(IntEnum):",
        '    """The API keys of requests."""',
        "",
    ]
    lines += [f"    {name.upper()} = {key}" for key, name in sorted(api_key_map.items())]
    return "\n".join([*lines, ""])


def render_all() -> dict[str, str]:
    pages = {"__init__.py": render_index(), "api_keys.py": render_keys()}
    for key, name in sorted(api_key_map.items()):
        if name not in NAMED_ONLY:
            pages[f"{name}.py"] = render_module(name, key)
    for name in DATA_MESSAGES:
        pages[f"{name}.py"] = render_module(name, None)
    return {name: format_python(text) for name, text in pages.items()}


def format_python(text: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--line-length", "130", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a file differs, is missing or does not belong here"
    )
    check = parser.parse_args().check
    pages = render_all()
    written = {path.name for path in TARGET.glob("*.py")}
    stale = [name for name, text in pages.items() if name not in written or (TARGET / name).read_text() != text]
    unwanted = sorted(written - set(pages))
    if check and (stale or unwanted):
        raise SystemExit(f"not as generated: {', '.join([*stale, *unwanted])}")
    for name in stale:
        (TARGET / name).write_text(pages[name])
    for name in unwanted:
        (TARGET / name).unlink()


if __name__ == "__main__":
    main()
