"""Properties of random Protobuf schemas.

google.protobuf is the witness that a reader of a compatible schema reads what the writer wrote.
"""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from barnabas.registry.formats.interface import InvalidSchema
from barnabas.registry.formats.protobuf import FORMAT

SAMPLES: dict[str, list[Any]] = {
    "int32": [0, 1, -1, 2**31 - 1],
    "int64": [0, 5, -(2**40)],
    "uint32": [0, 2**32 - 1],
    "uint64": [0, 2**63],
    "sint32": [0, -2],
    "sint64": [0, -(2**40)],
    "bool": [False, True],
    "fixed32": [0, 9],
    "sfixed32": [0, -9],
    "fixed64": [0, 9],
    "sfixed64": [0, -9],
    "float": [0.0, 0.5],
    "double": [0.0, 0.25],
    "string": ["", "tea"],
    "bytes": [b"", b"tea"],
}
ANY, TIMESTAMP = (f'import "google/protobuf/{name}.proto";' for name in ("any", "timestamp"))
USER = "message M { google.protobuf.Any a = 1; google.protobuf.Timestamp t = 2; }"
DEFAULTS = """syntax = "proto2";

message M {
  optional int32 a = 1 [default = 5, json_name = "x"];
  optional string s = 2 [default = "a\\"b"];
}
"""
NUMBERS = ("int32", "int64", "uint32", "uint64", "bool")


class Maker:
    """Makes a schema and another one that is nearly the same."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def some(self, probability: float) -> bool:
        return self.chance.random() < probability

    def field(self, number: int, kinds: tuple[str, ...]) -> str:
        kind = self.chance.choice(kinds)
        label = self.chance.choice(["", "", "optional ", "repeated "])
        if kind == "map":
            return f"map<{self.chance.choice(['string', 'int32'])}, {self.chance.choice(list(SAMPLES))}> f{number} = {number};"
        return f"{label}{kind} f{number} = {number};"

    def near(self, line: str, number: int, kinds: tuple[str, ...]) -> str | None:
        """The same field, changed, or none."""
        change = self.chance.choice(["same"] * 4 + ["kind", "label", "remove", "name", "other"])
        match change:
            case "remove":
                return None
            case "name":
                return line.replace(f" f{number} ", f" g{number} ")
            case "label":
                return line.removeprefix("optional ").removeprefix("repeated ")
            case "other":
                return self.field(number, kinds)
            case "kind":
                if "map" not in line:
                    return re.sub(rf"\b({'|'.join(NUMBERS)}) f", f"{self.chance.choice(NUMBERS)} f", line)
        return line

    def pair(self) -> tuple[str, str]:
        kinds = (*SAMPLES, "Inner", "Color", "map")
        old, new = [], []
        for number in range(1, self.chance.randrange(2, 7)):
            line = self.field(number, kinds)
            old.append(line)
            changed = self.near(line, number, kinds)
            if changed is not None:
                new.append(changed)
        if self.some(0.3):
            new.append(self.field(20, kinds))
        oneof = ["int32 p = 30;", "string q = 31;"]
        if self.some(0.4):
            old.append(f"oneof o {{ {' '.join(oneof)} }}")
            new.append(
                f"oneof o {{ {' '.join([*oneof, 'bool r = 32;'] if self.some(0.5) else oneof[: self.chance.choice([1, 2])])} }}"
            )
        inner = self.field(1, tuple(SAMPLES))
        changed_inner = self.near(inner, 1, tuple(SAMPLES)) or ""
        return self.text(old, inner), self.text(new, changed_inner)

    def text(self, fields: list[str], inner: str) -> str:
        return (
            f'syntax = "proto3"; package p; message M {{ {" ".join(fields)} }} message Inner {{ {inner} }} '
            "enum Color { RED = 0; BLUE = 1; GREEN = 5; }"
        )

    def value(self, message: Any, depth: int = 0) -> None:
        """Fill a message."""
        for field in message.DESCRIPTOR.fields:
            if self.some(0.3) or depth > 1:
                continue
            name = field.name
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                key, kind = (field.message_type.fields_by_name[each] for each in ("key", "value"))
                getattr(message, name)[self.sample(key)] = self.sample(kind)
            elif field.message_type is not None:
                self.value(getattr(message, name).add() if field.is_repeated else getattr(message, name), depth + 1)
            elif field.is_repeated:
                getattr(message, name).extend([self.sample(field), self.sample(field)])
            else:
                setattr(message, name, self.sample(field))

    def sample(self, field: FieldDescriptor) -> Any:
        if field.enum_type is not None:
            return self.chance.choice([0, 1, 5])
        return self.chance.choice(SAMPLES[TYPE_NAMES[field.type]])


TYPE_NAMES = {
    value: name.removeprefix("TYPE_").lower() for name, value in vars(FieldDescriptor).items() if name.startswith("TYPE_")
}


def message_class(file: FileDescriptorProto) -> Any:
    return GetMessageClass(DescriptorPool().AddSerializedFile(file.SerializeToString()).message_types_by_name["M"])


def check_read(written: Any, read: Any) -> None:
    """Fields that both have mean the same to both, as far as the narrower of two numbers can tell.

    Confluent's rules do not compare a label with none, so a field of proto3 may become repeated; such a field is left out here.
    """
    theirs = {field.number: field for field in read.DESCRIPTOR.fields}
    for field, value in written.ListFields():
        other = theirs.get(field.number)
        if other is None or field.is_repeated != other.is_repeated:
            continue
        found = getattr(read, other.name)
        if field.message_type is not None and not field.is_repeated:
            check_read(value, found)
        elif field.type in {FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES} and not field.is_repeated:
            assert found in (value, value.encode() if isinstance(value, str) else value.decode())
        elif field.message_type is not None:
            assert len(found) == len(value)
        elif field.type == other.type:
            assert (list(found) == list(value)) if field.is_repeated else (found == value)
        elif field.is_repeated:
            assert len(found) == len(value)
        elif other.type == FieldDescriptor.TYPE_BOOL:
            assert found == bool(value)
        elif other.enum_type is None and not (field.type == FieldDescriptor.TYPE_SINT64 and abs(value) >= 2**31):
            assert (found - int(value)) % 2**32 == 0


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 2**32))
def test_a_compatible_reader_reads_what_was_written(seed: int) -> None:
    maker = Maker(random.Random(seed))
    old_text, new_text = maker.pair()
    old, new = FORMAT.parse(old_text, {}), FORMAT.parse(new_text, {})
    assert old.unreadable(old) == []
    assume(not new.unreadable(old))
    written = message_class(old.descriptor())()
    maker.value(written)
    read = message_class(new.descriptor())()
    read.ParseFromString(written.SerializeToString())
    check_read(written, read)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32))
def test_forms_mean_the_same(seed: int) -> None:
    text = Maker(random.Random(seed)).pair()[0]
    schema = FORMAT.parse(text, {})
    for form in (schema.canonical, schema.normalized().canonical, schema.formatted("serialized")):
        again = FORMAT.parse(form, {})
        assert again.differences(schema) == []
        assert again.normalized().canonical == schema.normalized().canonical
        assert FORMAT.parse(again.canonical, {}).canonical == again.canonical
    assert schema.normalized().normalized().canonical == schema.normalized().canonical


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("message M { int32 a = 1; int32 b = 2; }", "message M { int32 b = 2; int32 a = 1; }"),
        (
            'message M { int32 a = 1 [deprecated = true, json_name = "x"]; }',
            'message M { int32 a = 1 [json_name = "x", deprecated = true]; }',
        ),
        (
            'option java_package = "p"; option go_package = "g"; message M {}',
            'option go_package = "g"; option java_package = "p"; message M {}',
        ),
        ("package p; message M { N n = 1; } message N {}", "package p; message M { .p.N n = 1; } message N {}"),
        ("package p; message M { N n = 1; message N {} }", "package p; message M { p.M.N n = 1; message N {} }"),
        ("message M { reserved 4, 2; reserved \"b\", \"a\"; }", "message M { reserved 2, 4; reserved \"a\", \"b\"; }"),
        ("enum E { A = 0; B = 1; }", "enum E { A = 0; B = 1; } // with a comment"),
        (f"{ANY} {TIMESTAMP} {USER}", f"{TIMESTAMP} {ANY} {USER}"),
    ],
)  # fmt: skip
def test_texts_of_one_meaning_have_one_normal_form(one: str, other: str) -> None:
    schemas = [FORMAT.parse(f'syntax = "proto3"; {text}', {}) for text in (one, other)]
    assert schemas[0].normalized().canonical == schemas[1].normalized().canonical


def test_defaults_and_json_names_are_kept() -> None:
    schema = FORMAT.parse(DEFAULTS, {})
    for each in (schema, schema.normalized(), FORMAT.parse(schema.formatted("serialized"), {})):
        first, second = each.descriptor().message_type[0].field
        assert (first.default_value, first.json_name, second.default_value) == ("5", "x", 'a"b')
        assert "default = 5" in each.canonical
        assert 'json_name = "x"' in each.canonical


@pytest.mark.parametrize("text", ["", "message M { M m = 1 }", "message M { int32 a = 0; }", "message M { int32 a = 19000; }"])
def test_wrong_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        FORMAT.parse(f'syntax = "proto3"; {text}' if text else "", {})
