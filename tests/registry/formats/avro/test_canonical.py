"""The texts that Avro's Java library 1.12.1 prints, recorded from it, and Confluent's normalisation."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.registry.formats.avro import FORMAT
from tests.registry.formats.avro.records import enum, field, fixed, record, text

SAME = [
    '"string"',
    '["null",{"type":"map","values":"long"}]',
    "[]",
    '{"type":"error","name":"E","fields":[]}',
    '{"type":"int","logicalType":"foo"}',
    '{"type":"array","items":{"type":"int","logicalType":"date"}}',
    '{"type":"bytes","b":1,"logicalType":"decimal","scale":2,"precision":3}',
    '{"type":"record","name":"record","fields":[]}',
    '{"type":"record","name":"é","fields":[]}',
    '{"type":"record","name":"R","fields":[],"p":null}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":["null","R"]},{"name":"b","type":{"type":"array","items":"R"}}]}',
    '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"record","name":"S","namespace":"","fields":'
    '[{"name":"q","type":"n.R"},{"name":"r","type":["null","S"]}]}},{"name":"b","type":"S"}]}',
    '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"record","name":"R","namespace":"m","fields":'
    '[{"name":"q","type":"R"},{"name":"w","type":"n.R"}]}}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int","order":"descending","logicalType":"date"}]}',
]


@pytest.mark.parametrize("schema", SAME)
def test_a_canonical_text_stays(schema: str) -> None:
    assert FORMAT.parse(schema, {}).canonical == schema


CANONICAL: list[tuple[Any, str]] = [
    ({"type": "string"}, '"string"'),
    ('{"type":"int","type":"string"}', '"string"'),
    (
        {
            "fields": [
                {
                    "type": {"type": "int", "x": 1},
                    "name": "a",
                    "default": 1,
                    "doc": "d",
                    "order": "ignore",
                    "aliases": ["z"],
                    "p": {"b": 1, "a": 2},
                }
            ],
            "name": "R",
            "namespace": "n.s",
            "type": "record",
            "aliases": ["A", "q.B"],
            "doc": "dd",
            "custom": [1, 2],
            "zed": 1.0,
        },
        '{"type":"record","name":"R","namespace":"n.s","doc":"dd","fields":[{"name":"a","type":{"type":"int","x":1},"doc":"d","default":1,'
        '"order":"ignore","aliases":["z"],"p":{"b":1,"a":2}}],"custom":[1,2],"zed":1.0,"aliases":["A","q.B"]}',
    ),
    (record(name="a.R", namespace="zzz"), '{"type":"record","name":"R","namespace":"a","fields":[]}'),
    (record(name=".R"), '{"type":"record","name":"R","fields":[]}'),
    (record(namespace=None, doc=1), '{"type":"record","name":"R","fields":[]}'),
    (record(field("a", "int", order="ASCENDING", doc=None)), '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'),
    (
        fixed("F", 4, doc="d", x=1, aliases=["G"]),
        '{"type":"fixed","name":"F","doc":"d","size":4,"x":1,"aliases":["G"]}',
    ),
    (
        enum("E", "A", doc="d", x=1, aliases=["G"], default="A"),
        '{"type":"enum","name":"E","doc":"d","symbols":["A"],"default":"A","x":1,"aliases":["G"]}',
    ),
    (enum("E", "a", default=None), '{"type":"enum","name":"E","symbols":["a"]}'),
    (
        record(namespace="n", aliases=["x.y", "n.q", ".t"]),
        '{"type":"record","name":"R","namespace":"n","fields":[],"aliases":["x.y","q","t"]}',
    ),
    (
        {
            "type": "int",
            "name": "a",
            "doc": "b",
            "aliases": ["q"],
            "size": 3,
            "fields": 1,
            "symbols": 2,
            "items": 3,
            "order": "x",
            "default": 7,
        },
        '{"type":"int","order":"x","default":7}',
    ),
    (
        record(field("a", enum("E", "A")), field("b", enum("E", "A", doc="again")), field("c", {"type": "E"})),
        '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"enum","name":"E","symbols":["A"]}},{"name":"b","type":"E"},'
        '{"name":"c","type":"E"}]}',
    ),
    (
        [record(field("b", "B"), name="A"), record(name="B")],
        '[{"type":"record","name":"A","fields":[{"name":"b","type":{"type":"record","name":"B","fields":[]}}]},"B"]',
    ),
    (
        r'{"type":"record","name":"R","fields":[],"p":"\u001f\u000b\b \/ é \\u001f"}',
        r'{"type":"record","name":"R","fields":[],"p":"\u001F\u000B\b / é \\u001f"}',
    ),
]


@pytest.mark.parametrize(("schema", "canonical"), CANONICAL)
def test_the_canonical_text_is_the_one_of_java(schema: Any, canonical: str) -> None:
    assert FORMAT.parse(text(schema), {}).canonical == canonical


@pytest.mark.parametrize(
    ("number", "java"),
    [
        ("1E2", "100.0"),
        ("1.10", "1.1"),
        ("-0.0", "-0.0"),
        ("0.001", "0.001"),
        ("0.0001", "1.0E-4"),
        ("-5e-5", "-5.0E-5"),
        ("9999999.5", "9999999.5"),
        ("12345678.0", "1.2345678E7"),
        ("100000000000.5", "1.000000000005E11"),
        ("1e22", "1.0E22"),
        ("9007199254740993.0", "9.007199254740992E15"),
        ("4.9e-324", "4.9E-324"),
        ("1.7976931348623157e308", "1.7976931348623157E308"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
    ],
)
def test_numbers_are_written_as_in_java(number: str, java: str) -> None:
    assert FORMAT.parse(f'{{"type":"int","p":{number}}}', {}).canonical == f'{{"type":"int","p":{java}}}'


@pytest.mark.parametrize(("given", "printed"), [('"NaN"', '"NaN"'), ('"1.5"', "1.5"), ("1", "1"), ("1e10", "1.0E10")])
def test_a_default_of_a_double_may_be_text(given: str, printed: str) -> None:
    schema = FORMAT.parse(f'{{"type":"record","name":"R","fields":[{{"name":"a","type":"double","default":{given}}}]}}', {})
    assert schema.canonical == f'{{"type":"record","name":"R","fields":[{{"name":"a","type":"double","default":{printed}}}]}}'


B = text(record(field("c", enum("E", "A")), name="acme.B"))


@pytest.mark.parametrize(
    ("schema", "canonical", "resolved"),
    [
        (
            '"acme.B"',
            '"acme.B"',
            '{"type":"record","name":"B","namespace":"acme","fields":[{"name":"c","type":{"type":"enum","name":"E","symbols":["A"]}}]}',
        ),
        (
            B,
            '"acme.B"',
            '{"type":"record","name":"B","namespace":"acme","fields":[{"name":"c","type":{"type":"enum","name":"E","symbols":["A"]}}]}',
        ),
        (
            record(field("b", "acme.B"), field("e", "acme.E"), name="A"),
            '{"type":"record","name":"A","fields":[{"name":"b","type":"acme.B"},{"name":"e","type":'
            '{"type":"enum","name":"E","namespace":"acme","symbols":["A"]}}]}',
            '{"type":"record","name":"A","fields":[{"name":"b","type":{"type":"record","name":"B","namespace":"acme","fields":'
            '[{"name":"c","type":{"type":"enum","name":"E","symbols":["A"]}}]}},{"name":"e","type":"acme.E"}]}',
        ),
    ],
)
def test_the_root_of_a_reference_is_a_name(schema: Any, canonical: str, resolved: str) -> None:
    parsed = FORMAT.parse(text(schema), {"b": B})
    assert parsed.canonical == canonical
    assert [parsed.formatted(form) for form in ("", "default", "unknown", "resolved", "RESOLVED")] == [canonical] * 3 + [
        resolved
    ] * 2
    assert FORMAT.parse(canonical, {"b": B}).canonical == canonical


NORMAL: list[tuple[Any, str]] = [
    (
        {"type": "int", "b": 1, "logicalType": "date", "a": {"z": 1, "y": 2}},
        '{"type":"int","logicalType":"date","a":{"y":2,"z":1},"b":1}',
    ),
    ({"type": "string", "logicalType": "date", "a": 1}, '{"type":"string","a":1,"logicalType":"date"}'),
    (
        {"type": "bytes", "scale": 0, "a": 1, "precision": 4, "logicalType": "decimal"},
        '{"type":"bytes","logicalType":"decimal","precision":4,"a":1,"scale":0}',
    ),
    (
        fixed("F", 2, precision=5, a=1, logicalType="decimal"),
        '{"type":"fixed","name":"F","size":2,"a":1,"logicalType":"decimal","precision":5}',
    ),
    (fixed("F", 12, a=1, logicalType="duration"), '{"type":"fixed","name":"F","size":12,"logicalType":"duration","a":1}'),
    (record(doc="", z=1, a=2, aliases=["y", "x"]), '{"type":"record","name":"R","fields":[],"a":2,"z":1,"aliases":["x","y"]}'),
    (
        record(field("d", "double", default=1, doc="", aliases=["y", "x"]), field("l", "long", default="x")),
        '{"type":"record","name":"R","fields":[{"name":"d","type":"double","doc":"","default":1.0,"aliases":["x","y"]},{"name":"l","type":"long"}]}',
    ),
    (
        record(field("m", {"type": "map", "values": "int"}, default={"b": 1, "a": 2}), field("n", ["null", "int"], default=None)),
        '{"type":"record","name":"R","fields":[{"name":"m","type":{"type":"map","values":"int"},"default":{"a":2,"b":1}},'
        '{"name":"n","type":["null","int"],"default":null}]}',
    ),
    (
        enum("n.E", "b", "a", default="b", z=1, a=2),
        '{"type":"enum","name":"E","namespace":"n","symbols":["b","a"],"default":"b","a":2,"z":1}',
    ),
]


@pytest.mark.parametrize(("schema", "normal"), NORMAL)
def test_the_normal_text(schema: Any, normal: str) -> None:
    normalized = FORMAT.parse(text(schema), {}).normalized()
    assert normalized.canonical == normal
    assert normalized.normalized().canonical == normal


def test_the_normal_text_keeps_the_names_of_references() -> None:
    assert FORMAT.parse(text(record(field("b", "B"), name="acme.A")), {"b": B}).normalized().canonical == (
        '{"type":"record","name":"A","namespace":"acme","fields":[{"name":"b","type":"B"}]}'
    )


@pytest.mark.parametrize(
    ("kind", "default", "normal"),
    [
        ("float", 1.1, "1.1"),
        ("float", 1, "1.0"),
        ("float", 1e40, '"Infinity"'),
        ("double", 3000000000, "3.0E9"),
        ("int", 3000000000, "3000000000"),
        (["double", "int"], 1, "1.0"),
        ({"type": "array", "items": "double"}, [1, 2], "[1.0,2.0]"),
        ("bytes", "ÿ", '"ÿ"'),
        ({"type": "array", "items": ["null", "string"]}, [None, "x"], "[null,null]"),
    ],
)
def test_normalisation_gives_defaults_the_form_of_their_type(kind: Any, default: Any, normal: str) -> None:
    canonical = FORMAT.parse(text(record(field("a", kind, default=default))), {}).normalized().canonical
    assert canonical.endswith(f',"default":{normal}}}]}}')


@pytest.mark.parametrize(
    ("kind", "default"), [("int", 1.5), ("string", 1), (["null", "string"], "x"), ("boolean", "x"), ("double", 1 << 70)]
)
def test_normalisation_drops_a_default_of_another_type(kind: Any, default: Any) -> None:
    assert "default" not in FORMAT.parse(text(record(field("a", kind, default=default))), {}).normalized().canonical
