"""The rules of compatibility as Confluent's registry has them: a change, what it is called, and whether a reader can read it.

In a row `old` and `new` are the bodies of messages M, or whole files if they begin with `message` or `package`.
"""

from __future__ import annotations

import pytest

from barnabas.registry.formats.protobuf import FORMAT

E = " } enum E { OFF = 0; ON = 1;"  # ends M and begins an enum

RULES = {
    "a name in full": ("N n = 1; message N {}", ".M.N n = 1; message N {}", [], True),
    "a name in full in a package": (
        "package p; message M { N n = 1; message N {} }", "package p; message M { .p.M.N n = 1; message N {} }", [], True,
    ),
    "a name in full in a map": ("map<string, N> n = 1; message N {}", "map<string, M.N> n = 1; message N {}", [], True),
    "another package": ("package p; message M {}", "package q; message M {}", ["PACKAGE_CHANGED #/"], True),
    "a field more": ("string a = 1;", "string a = 1; string b = 2;", ["FIELD_ADDED #/M/2"], True),
    "a field more inside": (
        "message N { int32 a = 1; }", "message N { int32 a = 1; int32 b = 2; }", ["FIELD_ADDED #/M/N/2"], True,
    ),
    "a field less": ("string a = 1; string b = 2;", "string a = 1;", ["FIELD_REMOVED #/M/2"], True),
    "another number": ("string a = 1;", "string a = 2;", ["FIELD_REMOVED #/M/1", "FIELD_ADDED #/M/2"], True),
    "another name": ("string a = 1;", "string b = 1;", ["FIELD_NAME_CHANGED #/M/1"], True),
    "a wider number": ("int32 a = 1;", "int64 a = 1;", [], True),
    "a number becomes a boolean": ("int32 a = 1;", "bool a = 1;", [], True),
    "zigzag": ("int32 a = 1;", "sint32 a = 1;", ["FIELD_SCALAR_KIND_CHANGED #/M/1"], False),
    "fixed": ("fixed32 a = 1;", "sfixed32 a = 1;", [], True),
    "fixed of another width": ("fixed32 a = 1;", "fixed64 a = 1;", ["FIELD_SCALAR_KIND_CHANGED #/M/1"], False),
    "float and double": ("float a = 1;", "double a = 1;", ["FIELD_SCALAR_KIND_CHANGED #/M/1"], False),
    "a string becomes bytes": ("string a = 1;", "bytes a = 1;", [], True),
    "a number becomes a string, and has another name": (
        "int32 a = 1;", "string b = 1;", ["FIELD_NAME_CHANGED #/M/1", "FIELD_SCALAR_KIND_CHANGED #/M/1"], False,
    ),
    "a number becomes an enum": ("int32 e = 1;", f"E e = 1;{E}", ["ENUM_ADDED #/E"], True),
    "an enum becomes a number": (f"E e = 1;{E}", "int32 e = 1;", ["ENUM_REMOVED #/E"], True),
    "a value of another name": (
        "E e = 1; } enum E { OFF = 0; ON = 1;", "E e = 1; } enum E { OFF = 0; GO = 1;", ["ENUM_CONST_CHANGED #/E/1"], True,
    ),
    "a value more": ("} enum E { OFF = 0;", "} enum E { OFF = 0; ON = 1;", ["ENUM_CONST_ADDED #/E/1"], True),
    "a value less": ("} enum E { OFF = 0; ON = 1;", "} enum E { OFF = 0;", ["ENUM_CONST_REMOVED #/E/1"], True),
    "a number becomes a message beside an enum of its name": (
        "int32 e = 1;", f".M.E e = 1; message E {{ string a = 1; }}{E}",
        ["FIELD_KIND_CHANGED #/M/1", "MESSAGE_ADDED #/M/E", "ENUM_ADDED #/E"], False,
    ),
    "a message becomes a number": (
        "N n = 1; message N {}", "int32 n = 1;", ["FIELD_KIND_CHANGED #/M/1", "MESSAGE_REMOVED #/M/N"], False,
    ),
    "a message of another name": (
        "message M { N n = 1; } message N {}", "message M { O n = 1; } message O {}",
        ["FIELD_NAMED_TYPE_CHANGED #/M/1", "MESSAGE_REMOVED #/N", "MESSAGE_ADDED #/O"], False,
    ),
    "a value of a map": (
        "map<string, int32> m = 1;", "map<string, string> m = 1;", ["FIELD_SCALAR_KIND_CHANGED #/M/1"], False,
    ),
    "a key of a map": ("map<string, int32> m = 1;", "map<int32, int32> m = 1;", ["FIELD_SCALAR_KIND_CHANGED #/M/1"], False),
    "a map becomes a number": ("map<string, int32> m = 1;", "int32 m = 1;", ["FIELD_KIND_CHANGED #/M/1"], False),
    "a repeated message": ("optional N n = 1; message N {}", "repeated N n = 1; message N {}", [], True),
    "a repeated string": ("optional string a = 1;", "repeated string a = 1;", ["FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/1"], True),
    "repeated bytes": ("optional bytes a = 1;", "repeated bytes a = 1;", ["FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/1"], True),
    "a repeated number": ("optional int32 a = 1;", "repeated int32 a = 1;", ["FIELD_NUMERIC_LABEL_CHANGED #/M/1"], False),
    "a repeated number that had no label": ("int32 a = 1;", "repeated int32 a = 1;", [], True),
    "one field moves into a oneof": ("string a = 1; string b = 2;", "string a = 1; oneof o { string b = 2; int32 c = 3; }",
                                     ["ONEOF_ADDED #/M/o"], True),
    "two fields move into a oneof": (
        "string a = 1; string b = 2;", "oneof o { string a = 1; string b = 2; int32 c = 3; }",
        ["MULTIPLE_FIELDS_MOVED_TO_ONEOF #/M/o", "ONEOF_ADDED #/M/o"], False,
    ),
    "a field moves into a oneof that was there": (
        "string a = 1; oneof o { string b = 2; }", "oneof o { string a = 1; string b = 2; }",
        ["FIELD_MOVED_TO_EXISTING_ONEOF #/M/o", "ONEOF_FIELD_ADDED #/M/o/1"], False,
    ),
    "a oneof gets a field": (
        "oneof o { string a = 1; }", "oneof o { string a = 1; int32 b = 2; }", ["ONEOF_FIELD_ADDED #/M/o/2"], True,
    ),
    "a oneof loses a field": (
        "oneof o { string a = 1; int32 b = 2; }", "oneof o { string a = 1; }", ["ONEOF_FIELD_REMOVED #/M/o/2"], False,
    ),
    "a message more": ("message M {}", "message M {} message N {}", ["MESSAGE_ADDED #/N"], True),
    "a message less": ("message M {} message N {}", "message M {}", ["MESSAGE_REMOVED #/N"], False),
    "a message before others": ("message M {}", "message N {} message M {}", ["MESSAGE_ADDED #/N", "MESSAGE_MOVED #/M"], True),
    "messages in another order": (
        "message M {} message N {}", "message N {} message M {}", ["MESSAGE_MOVED #/M", "MESSAGE_MOVED #/N"], True,
    ),
}  # fmt: skip


def text(body: str, head: str = 'syntax = "proto3";') -> str:
    return f"{head} {body if body.startswith(('message M', 'package', 'message N {} message M')) else f'message M {{ {body} }}'}"


@pytest.mark.parametrize(("old", "new", "changes", "compatible"), RULES.values(), ids=RULES)
def test_a_rule(old: str, new: str, changes: list[str], compatible: bool) -> None:
    before, after = FORMAT.parse(text(old), {}), FORMAT.parse(text(new), {})
    assert sorted(f"{each.kind} {each.path}" for each in after.differences(before)) == sorted(changes)
    assert (not after.unreadable(before)) == compatible


@pytest.mark.parametrize("field", ["a", "b"])
def test_required_fields_neither_come_nor_go(field: str) -> None:
    with_it, without = (f"optional int32 c = 1; {more}" for more in (f"required int32 {field} = 2;", ""))
    texts = [FORMAT.parse(text(each, 'syntax = "proto2";'), {}) for each in (with_it, without)]
    assert [each.kind for each in texts[1].unreadable(texts[0])] == ["REQUIRED_FIELD_REMOVED"]
    assert [each.kind for each in texts[0].unreadable(texts[1])] == ["REQUIRED_FIELD_ADDED"]


IMPORTS = {
    "it changes": ("package d; message G { int32 a = 1; }", "package d; message G { string a = 1; }",
                   ["FIELD_SCALAR_KIND_CHANGED #/G/1", "FIELD_NAMED_TYPE_CHANGED #/M/1"]),
    "its package changes": ("package d; message G { int32 a = 1; }", "package e; message G { int32 a = 1; }", []),
    "its package changes around a nested one": (
        "package d; message O { message G { int32 a = 1; } }", "package e; message O { message G { int32 a = 1; } }", [],
    ),
    "a nested one changes with its package": (
        "package d; message O { message G { int32 a = 1; } }", "package e; message O { message G { string a = 1; } }",
        ["FIELD_SCALAR_KIND_CHANGED #/O/G/1", "FIELD_NAMED_TYPE_CHANGED #/M/1"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "changes"), IMPORTS.values(), ids=IMPORTS)
def test_an_imported_message(old: str, new: str, changes: list[str]) -> None:
    schemas = []
    for number, imported in enumerate((old, new)):
        name = f"{imported.split()[1].rstrip(';')}.{'O.G' if 'message O' in imported else 'G'}"
        path = f"g{number}.proto"
        body = f'syntax = "proto3"; import "{path}"; message M {{ .{name} g = 1; }}'
        schemas.append(FORMAT.parse(body, {path: f'syntax = "proto3"; {imported}'}))
    assert [f"{each.kind} {each.path}" for each in schemas[1].differences(schemas[0])] == changes
    assert (not schemas[1].unreadable(schemas[0])) == (not changes)


def test_a_message_moves_into_an_import_and_back() -> None:
    own = FORMAT.parse('syntax = "proto3"; message M { G g = 1; } message G { int32 a = 1; }', {})
    head = 'syntax = "proto3"; import "g.proto"; message M { .d.G g = 1; }'
    imported = FORMAT.parse(head, {"g.proto": 'syntax = "proto3"; package d; message G { int32 a = 1; }'})
    assert [f"{each.kind} {each.path}" for each in imported.differences(own)] == ["MESSAGE_REMOVED #/G"]
    assert [f"{each.kind} {each.path}" for each in own.differences(imported)] == ["MESSAGE_ADDED #/G"]
    assert own.unreadable(imported) == []
