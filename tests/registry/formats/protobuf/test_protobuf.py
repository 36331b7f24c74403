"""The Protobuf format: canonical text, normal form, compatibility with Confluent's messages, tags, bad input."""

from __future__ import annotations

import pytest

from barnabas.registry.formats.interface import Entity, InvalidSchema
from barnabas.registry.formats.protobuf import FORMAT

_HEAD = 'syntax = "proto3";\n'
_ONE = _HEAD + "message T { string a = 1; int32 b = 2; }"

_CHANGES = {
    "same": (_ONE, _ONE, []),
    "scalar kind": (_ONE, _HEAD + "message T { string a = 1; string b = 2; }", ["FIELD_SCALAR_KIND_CHANGED #/T/2"]),
    "wider number": (_ONE, _HEAD + "message T { string a = 1; int64 b = 2; }", []),
    "field added": (_ONE, _HEAD + "message T { string a = 1; int32 b = 2; int32 c = 3; }", ["FIELD_ADDED #/T/3"]),
    "field removed": (_ONE, _HEAD + "message T { string a = 1; }", ["FIELD_REMOVED #/T/2"]),
    "message removed": (_ONE + "message U {}", _ONE, ["MESSAGE_REMOVED #/U"]),
    "package": (_ONE, _HEAD + "package p; message T { string a = 1; int32 b = 2; }", ["PACKAGE_CHANGED #/"]),
    "label": (
        _HEAD + "message T { optional int32 a = 1; }",
        _HEAD + "message T { repeated int32 a = 1; }",
        ["FIELD_NUMERIC_LABEL_CHANGED #/T/1"],
    ),
    "many to oneof": (
        _ONE,
        _HEAD + "message T { oneof o { string a = 1; int32 b = 2; } }",
        ["MULTIPLE_FIELDS_MOVED_TO_ONEOF #/T/o", "ONEOF_ADDED #/T/o"],
    ),
    "one to oneof": (_ONE, _HEAD + "message T { string a = 1; oneof o { int32 b = 2; } }", ["ONEOF_ADDED #/T/o"]),
}


@pytest.mark.parametrize(("old", "new", "expected"), _CHANGES.values(), ids=_CHANGES)
def test_a_change_has_confluents_name_and_path(old: str, new: str, expected: list[str]) -> None:
    changes = FORMAT.parse(new, {}).differences(FORMAT.parse(old, {}))
    assert [f"{one.kind} {one.path}" for one in changes] == expected


def test_a_message_is_confluents() -> None:
    found = FORMAT.parse(_HEAD + "message T { string a = 1; string b = 2; }", {}).unreadable(FORMAT.parse(_ONE, {}))
    assert [one.text for one in found] == [
        '{errorType:"FIELD_SCALAR_KIND_CHANGED", description:"The kind of a SCALAR field at path \'#/T/2\' '
        'in the new schema does not match its kind in the old schema"}'
    ]


def test_an_imported_message_that_changed_is_another_type() -> None:
    text = _HEAD + 'import "g.proto"; message T { d.G g = 1; }'
    old, new = (
        FORMAT.parse(text, {"g.proto": f"{_HEAD}package d; message G {{ {kind} x = 1; }}"}) for kind in ("int32", "string")
    )
    assert [f"{one.kind} {one.path}" for one in new.differences(old)] == [
        "FIELD_SCALAR_KIND_CHANGED #/G/1",
        "FIELD_NAMED_TYPE_CHANGED #/T/1",
    ]


def test_the_canonical_text_has_confluents_layout_and_parses_to_itself() -> None:
    schema = FORMAT.parse(
        _HEAD + "package p; /* c */ enum E { A = 0; } message T { E e = 1; map<string,E> m = 2; message N {} }", {}
    )
    assert schema.canonical == (
        'syntax = "proto3";\npackage p;\n\nmessage T {\n  E e = 1;\n  map<string, E> m = 2;\n\n  message N {}\n}\nenum E {\n  A = 0;\n}\n'
    )
    assert FORMAT.parse(schema.canonical, {}).canonical == schema.canonical
    assert FORMAT.parse(schema.formatted("serialized"), {}).normalized().canonical == schema.normalized().canonical


def test_tags_are_written_and_read() -> None:
    entity = Entity("T.a", "SR_FIELD")
    assert FORMAT.parse(_ONE, {}).with_tags({entity: ["PII"]}, {}).tags() == {entity: frozenset({"PII"})}


def test_several_paths_name_one_field_and_the_imports_stay() -> None:
    schema = FORMAT.parse(_HEAD + "package p; message T { string a = 1; }", {})
    paths = ("T.a", ".T.a", "p.T.a", ".p.T.a")
    tagged = schema.with_tags({Entity(path, "SR_FIELD"): [f"T{number}"] for number, path in enumerate(paths)}, {})
    tags = ",\n".join(f'      "T{number}"' for number in range(len(paths)))
    field = f"  string a = 1 [(confluent.field_meta) = {{\n    tags: [\n{tags}\n    ]\n  }}];\n"
    assert tagged.canonical == f'syntax = "proto3";\npackage p;\n\nmessage T {{\n{field}}}\n'
    again = FORMAT.parse(tagged.canonical, {})
    assert again.tags() == {Entity("T.a", "SR_FIELD"): frozenset({"T0", "T1", "T2", "T3"})}
    assert FORMAT.parse(again.formatted("serialized"), {}).tags() == again.tags()
    assert again.with_tags({}, {Entity(path, "SR_FIELD"): [f"T{number}"] for number, path in enumerate(paths)}).tags() == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "message",
        "AAAA",
        _HEAD + "message T { U u = 1; }",
        _HEAD + "message T { string a = 1; string b = 1; }",
        _HEAD + 'import "absent.proto";',
        _HEAD + "message T {" * 5_000,
        _HEAD + "// " + "x" * 2_000_000,
        "/*" * 100_000,
    ],
)
def test_bad_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        FORMAT.parse(text, {})


def test_extensions_groups_and_ranges_keep_their_meaning() -> None:
    text = (
        'syntax = "proto2"; package p; message A { extensions 100 to max; extend A { optional int32 x = 100; } '
        "optional group G = 1 { optional string s = 1; } reserved 5 to 7; } extend A { optional string y = 101; }"
    )
    schema = FORMAT.parse(text, {})
    assert FORMAT.parse(schema.canonical, {}).canonical == schema.canonical
    assert FORMAT.parse(schema.formatted("serialized"), {}).normalized().canonical == schema.normalized().canonical
    assert "exten" not in schema.formatted("ignore_extensions")


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("0123", "83"),
        ("-017", "-15"),
        ("0x1F", "31"),
        ("0123.0", "123"),
        ("123.", "123"),
        ("1.23E+3", "1230"),
        ("123E-1", "12.3"),
        (".5", "0.5"),
        ("10f", "10"),
        ("1.250F", "1.25"),
        ("-2.0", "-2"),
        ("inf", "inf"),
        ("1e999999", "1e999999"),
    ],
)
def test_numbers_have_one_normal_form(written: str, normal: str) -> None:
    schema = FORMAT.parse(_HEAD + f"message T {{ string a = 1 [(x) = {{ v: {written} }}]; }}", {})
    assert f"v: {normal}\n" in schema.normalized().canonical
