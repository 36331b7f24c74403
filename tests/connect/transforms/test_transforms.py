"""Each transform, on small batches."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from barnabas.connect.catalog import Kind, find
from barnabas.connect.config_types import ConfigError
from barnabas.connect.converters.header_converters import HEADERS
from barnabas.connect.converters.json_schema import name_of, version_of
from barnabas.connect.converters.registered import AvroConverter
from barnabas.connect.converters.unions import joined
from barnabas.connect.errors import ConnectError
from barnabas.connect.java_patterns import java_pattern, java_replacement
from barnabas.connect.transforms.chain import Chain
from barnabas.connect.transforms.interface import metadata_of

NOON = datetime.datetime(2026, 1, 2, 12, 0, 0, 500_000, tzinfo=datetime.UTC)
INNER = {"d": 2.5, "e": {"f": True}}
ROWS = [{"a": 1, "b": "x", "c": INNER}, None]


def records(rows: list[Any] = ROWS, **more: Any) -> pa.Table:
    count = len(rows)
    columns = {
        "value": pa.array(rows),
        "key": pa.array([{"k": n} for n in range(count)]),
        "topic": pa.array(["t"] * count),
        "partition": pa.array([3] * count, pa.int32()),
        "offset": pa.array(range(count), pa.int64()),
        "timestamp": pa.array([NOON] * count, pa.timestamp("us", "UTC")),
    }
    return pa.table({**columns, **more})


def applied(name: str, config: Mapping[str, str], given: pa.Table | None = None) -> pa.Table:
    made = Chain(
        {"transforms": "x", "transforms.x.type": name, **{f"transforms.x.{key}": value for key, value in config.items()}}
    )
    return made.apply(records() if given is None else given)


def values(table: pa.Table, column: str = "value") -> list[Any]:
    return table.column(column).to_pylist()


def test_cast_changes_the_types_of_fields() -> None:
    found = applied("Cast$Value", {"spec": "a:string,b:string"})
    assert values(found)[0] == {"a": "1", "b": "x", "c": INNER}
    assert values(found)[1] is None


@pytest.mark.parametrize(
    ("value", "kind", "after"),
    [
        (1, "string", "1"), (1.9, "int32", 1), ("17", "int64", 17), ("true", "boolean", True), ("no", "boolean", False),
        (0, "boolean", False), (2, "boolean", True), (300, "int8", 44), (1.5, "string", "1.5"), (True, "string", "true"),
        (NOON, "int64", 1767355200500), (datetime.date(1970, 1, 3), "int32", 2),
    ],
)  # fmt: skip
def test_cast_of_a_whole_value(value: Any, kind: str, after: Any) -> None:
    assert values(applied("Cast$Value", {"spec": kind}, records([value]))) == [after]


def test_a_text_that_is_no_number_cannot_be_cast() -> None:
    with pytest.raises(ConnectError, match="Value cannot be cast from string to int32"):
        applied("Cast$Value", {"spec": "int32"}, records(["x"]))


def test_extract_field() -> None:
    assert values(applied("ExtractField$Value", {"field": "a"})) == [1, None]
    assert values(applied("ExtractField$Key", {"field": "k"}), "key") == [0, 1]
    assert values(applied("ExtractField$Value", {"field": "c.e.f", "field.syntax.version": "V2"})) == [True, None]
    with pytest.raises(ConnectError, match="Unknown field: z"):
        applied("ExtractField$Value", {"field": "z"})


def test_hoist_field() -> None:
    assert values(applied("HoistField$Value", {"field": "v"}, records([1, 2]))) == [{"v": 1}, {"v": 2}]


def test_insert_field() -> None:
    config = {"topic.field": "t", "partition.field": "p!", "offset.field": "o", "static.field": "s?", "static.value": "const"}
    found = values(applied("InsertField$Value", config, records([{"a": 1}, None])))
    assert found == [{"a": 1, "t": "t", "p": 3, "o": 0, "s": "const"}, None]
    with pytest.raises(ConfigError, match="No field insertion configured"):
        applied("InsertField$Value", {})


def test_replace_field() -> None:
    assert values(applied("ReplaceField$Value", {"exclude": "c", "renames": "a:z"})) == [{"z": 1, "b": "x"}, None]
    assert values(applied("ReplaceField$Value", {"include": "b"})) == [{"b": "x"}, None]
    with pytest.raises(ConfigError, match="Invalid rename mapping: a"):
        applied("ReplaceField$Value", {"renames": "a"})


def test_mask_field() -> None:
    assert values(applied("MaskField$Value", {"fields": "a,b"}))[0] == {"a": 0, "b": "", "c": INNER}
    given = records([{"card": "1234", "n": 5}, {"card": None, "n": 6}])
    assert values(applied("MaskField$Value", {"fields": "card", "replacement": "***"}, given)) == [
        {"card": "***", "n": 5}, {"card": None, "n": 6},
    ]  # fmt: skip
    with pytest.raises(ConnectError, match=r"Unable to convert x \(n\) to number"):
        applied("MaskField$Value", {"fields": "n", "replacement": "x"}, given)


def test_value_to_key() -> None:
    assert values(applied("ValueToKey", {"fields": "b,a"}), "key") == [{"b": "x", "a": 1}, None]
    with pytest.raises(ConnectError, match="Field does not exist: z"):
        applied("ValueToKey", {"fields": "z"})


def test_flatten() -> None:
    assert values(applied("Flatten$Value", {"delimiter": "_"})) == [{"a": 1, "b": "x", "c_d": 2.5, "c_e_f": True}, None]


@pytest.mark.parametrize(
    ("value", "config", "after"),
    [
        (NOON, {"target.type": "unix"}, 1767355200500),
        (NOON, {"target.type": "unix", "unix.precision": "seconds"}, 1767355200),
        (NOON, {"target.type": "string", "format": "yyyy-MM-dd'T'HH:mm:ss.SSSX"}, "2026-01-02T12:00:00.500Z"),
        (NOON, {"target.type": "Date"}, datetime.date(2026, 1, 2)),
        (NOON, {"target.type": "Time"}, datetime.time(12, 0, 0, 500_000)),
        (1767355200500, {"target.type": "Timestamp"}, NOON),
        ("2026-01-02 12:00:00.500", {"target.type": "Timestamp", "format": "yyyy-MM-dd HH:mm:ss.SSS"}, NOON),
        ("02 Jan 2026", {"target.type": "unix", "format": "dd MMM yyyy"}, 1767312000000),
    ],
)
def test_timestamp_converter(value: Any, config: dict[str, str], after: Any) -> None:
    assert values(applied("TimestampConverter$Value", config, records([value]))) == [after]
    field = applied("TimestampConverter$Value", {**config, "field": "m"}, records([{"m": value, "n": 1}]))
    assert values(field) == [{"m": after, "n": 1}]


def test_a_text_that_is_no_time_is_named() -> None:
    with pytest.raises(ConnectError, match=r"value \(x\) does not match pattern \(yyyy\)"):
        applied("TimestampConverter$Value", {"target.type": "unix", "format": "yyyy"}, records(["x"]))


def test_regex_router() -> None:
    given = records([1, 2], topic=pa.array(["db.public.orders", "other"]))
    found = applied("RegexRouter", {"regex": r"db\.(\w+)\.(?<name>\w+)".replace("?<", "?P<"), "replacement": "$1-${name}"}, given)
    assert values(found, "topic") == ["public-orders", "other"]


def test_timestamp_router() -> None:
    assert values(applied("TimestampRouter", {"timestamp.format": "yyyy/MM"}), "topic") == ["t-2026/01"] * 2


def test_headers() -> None:
    made = applied("InsertHeader", {"header": "h", "value.literal": "v"})
    assert values(made, "headers")[0] == [{"key": "h", "value": b"v"}]
    made = applied(
        "HeaderFrom$Value", {"fields": "a,b", "headers": "A,B", "operation": "move"}, records([{"a": 1, "b": "x", "c": 2}])
    )
    assert values(made, "headers") == [[{"key": "A", "value": b"1"}, {"key": "B", "value": b"x"}]]
    assert values(made) == [{"c": 2}]
    assert values(applied("DropHeaders", {"headers": "A"}, made), "headers") == [[{"key": "B", "value": b"x"}]]
    with pytest.raises(ConfigError, match="must have the same number of elements"):
        applied("HeaderFrom$Value", {"fields": "a", "headers": "A,B", "operation": "copy"})


def test_set_schema_metadata_changes_no_values() -> None:
    assert values(applied("SetSchemaMetadata$Value", {"schema.name": "n"})) == ROWS


def test_sql_gives_another_value_and_keeps_the_topic() -> None:
    given = records([{"a": 1}, {"a": 2}, {"a": 3}])
    found = applied("barnabas.Sql", {"query": "select a * 2 as double, _key from records where a > 1"}, given)
    assert (values(found), values(found, "key"), values(found, "topic")) == (
        [{"double": 4}, {"double": 6}], [{"k": 1}, {"k": 2}], ["t", "t"],
    )  # fmt: skip
    for query in ("drop table x", "select 1; select 2", "selec 1"):
        with pytest.raises(ConfigError, match="for configuration query"):
            applied("barnabas.Sql", {"query": query}, given)
    with pytest.raises(ConnectError, match="the query of the transform failed"):
        applied("barnabas.Sql", {"query": "select nothing from records"}, given)
    with pytest.raises(ConnectError, match="the query of the transform failed"):
        applied("barnabas.Sql", {"query": "select * from read_csv('/etc/passwd')"}, given)


def doubled(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table, table])


def test_python_calls_a_function() -> None:
    assert values(applied("barnabas.Python", {"function": f"{__name__}:doubled"}, records([1]))) == [1, 1]
    with pytest.raises(ConfigError, match="for configuration function"):
        applied("barnabas.Python", {"function": "nowhere:f"})


def chain(**more: str) -> Chain:
    base = {
        "transforms": "drop,hoist",
        "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.drop.predicate": "gone",
        "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.hoist.field": "v",
        "predicates": "gone,other",
        "predicates.gone.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
        "predicates.other.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "predicates.other.pattern": "o.*",
    }
    return Chain({**base, **{key.replace("__", "."): value for key, value in more.items()}})


def test_predicates_say_which_records_are_changed() -> None:
    given = records([1, None, 3], topic=pa.array(["t", "t", "other"]))
    assert values(chain().apply(given)) == [{"v": 1}, {"v": 3}]
    assert values(chain(transforms__drop__negate="true").apply(given)) == [{"v": None}]
    some = chain(transforms__hoist__predicate="other", transforms__drop__predicate="other").apply(given)
    assert values(some) == [1, None]


def test_records_keep_their_order_when_some_are_changed() -> None:
    given = records([{"a": 1}, {"a": 2}, {"a": 3}], topic=pa.array(["other", "t", "other"]))
    config = {
        "transforms": "i", "transforms.i.type": "InsertField$Value", "transforms.i.static.field": "s", "transforms.i.static.value": "x",
        "transforms.i.predicate": "p", "predicates": "p", "predicates.p.type": "TopicNameMatches", "predicates.p.pattern": "other",
    }  # fmt: skip
    assert values(Chain(config).apply(given)) == [{"a": 1, "s": "x"}, {"a": 2, "s": None}, {"a": 3, "s": "x"}]


def test_a_predicate_of_a_header() -> None:
    with_header = applied("InsertHeader", {"header": "h", "value.literal": "v"}, records([1]))
    given = pa.concat_tables([with_header, applied("DropHeaders", {"headers": "h"}, with_header)])
    config = {
        "transforms": "f", "transforms.f.type": "Filter", "transforms.f.predicate": "p", "predicates": "p",
        "predicates.p.type": "HasHeaderKey", "predicates.p.name": "h",
    }  # fmt: skip
    assert values(Chain(config).apply(given), "headers") == [[]]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"transforms": "a"}, 'Missing required configuration "transforms.a.type"'),
        ({"transforms": "a", "transforms.a.type": "Nothing"}, "Class Nothing could not be found"),
        ({"transforms": "a", "transforms.a.type": "Filter", "transforms.a.predicate": "p"}, "The predicate must be one of"),
        (
            {"transforms": "a", "transforms.a.type": "Cast$Value", "transforms.a.spec": "a:int99"},
            "Invalid schema type in cast: int99",
        ),
        (
            {"transforms": "a", "transforms.a.type": "RegexRouter", "transforms.a.regex": "(", "transforms.a.replacement": "x"},
            "Invalid regex",
        ),
    ],
)
def test_configs_that_cannot_work(config: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason.replace("(", r"\(")):
        Chain(config)


def test_each_transform_is_found_by_its_name() -> None:
    base = "org.apache.kafka.connect.transforms."
    for name in ("Cast", "ExtractField", "Flatten", "HeaderFrom", "HoistField", "InsertField", "MaskField", "ReplaceField",
                 "SetSchemaMetadata", "TimestampConverter"):  # fmt: skip
        assert [find(f"{base}{name}${side}", [Kind.TRANSFORMATION]).load().side for side in ("Key", "Value")] == ["key", "value"]


def test_confluents_drop() -> None:
    assert values(applied("io.confluent.connect.transforms.Drop$Value", {})) == [None, None]
    assert values(applied("io.confluent.connect.transforms.Drop$Key", {"schema.behavior": "retain"}), "key") == [None, None]


@pytest.mark.parametrize(
    ("side", "config", "topic"),
    [
        ("Value", {"field": "b"}, "x"), ("Key", {"field": "k", "skip.missing.or.null": "true"}, None), ("Header", {"field": "to"}, "h2"),
        ("Value", {"field": "gone", "skip.missing.or.null": "true"}, "t"), ("Value", {"field": "gone"}, None), ("Value", {}, None),
        ("Header", {"field": "gone"}, None),
    ],
)  # fmt: skip
def test_confluents_extract_topic(side: str, config: dict[str, str], topic: str | None) -> None:
    given = records(
        [{"a": 1, "b": "x"}], headers=pa.array([[{"key": "to", "value": b"h1"}, {"key": "to", "value": b"h2"}]], HEADERS)
    )
    name = f"io.confluent.connect.transforms.ExtractTopic${side}"
    if topic is None:
        with pytest.raises(
            ConnectError, match=r"the record has no topic at (gone|its value)|a topic is a text; (k|the value) is"
        ):
            applied(name, config, given)
    else:
        assert values(applied(name, config, given), "topic") == [topic]


def test_confluents_router_by_a_time_in_the_value() -> None:
    name = "io.confluent.connect.transforms.MessageTimestampRouter"
    config = {
        "topic.format": "foo-${topic}-${timestamp}", "message.timestamp.format": "yyyy-MM-dd", "topic.timestamp.format": "yyyy.MM.dd",
        "message.timestamp.keys": "timestamp,time,ts",
    }  # fmt: skip
    given = records([{"time": "2019-08-06", "ts": "2020-01-01"}, {"time": None, "ts": "2020-01-02T03:04"}])
    assert values(applied(name, config, given), "topic") == ["foo-t-2019.08.06", "foo-t-2020.01.02"]
    assert values(applied(name, config, records([{"ts": 1_577_836_800_000}])), "topic") == ["foo-t-2020.01.01"]
    for row, reason in (
        ({"x": 1}, "has no timestamp in timestamp, time, ts"),
        ({"ts": "x"}, r"value \(x\) does not match"),
        ({"ts": 1.5}, "is a text or"),
    ):
        with pytest.raises(ConnectError, match=reason):
            applied(name, config, records([row]))


def test_confluents_handler_of_tombstones() -> None:
    name = "io.confluent.connect.transforms.TombstoneHandler"
    for config in ({}, {"behavior": "ignore"}):
        assert values(applied(name, config)) == ROWS[:1]
    with pytest.raises(ConnectError, match="a tombstone"):
        applied(name, {"behavior": "fail"})
    assert values(applied(name, {"behavior": "fail"}, records(ROWS[:1]))) == ROWS[:1]


def test_confluents_router_by_a_pattern() -> None:
    found = applied("io.confluent.connect.cloud.transforms.TopicRegexRouter", {"regex": "(t)", "replacement": "$1-$1"})
    assert values(found, "topic") == ["t-t"] * 2


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("io.confluent.connect.transforms.Filter$Value", "conditions of JSONPath do not run here; barnabas.Sql"),
        ("io.confluent.connect.transforms.GzipDecompress$Value", r"Of io.confluent there are .*MessageTimestampRouter"),
        ("io.debezium.transforms.TimezoneConverter", r"Of io.debezium there are .*ExtractNewRecordState"),
        (
            "org.apache.kafka.connect.transforms.Nope",
            r"Class org\.apache\.kafka\.connect\.transforms\.Nope could not be found\.$",
        ),
    ],
)
def test_transforms_that_are_not_here_say_what_is(name: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        applied(name, {"filter.condition": "$.a"})


@pytest.mark.parametrize(
    ("pattern", "text", "replacement", "after"),
    [
        (r"(?<a>\w+)-(?<b>\w+)", "x-y", "${b}$1", "yx"), (r"\p{Lower}+", "abc", r"\$1", "$1"), (r"[\p{Digit}_]+", "1_2", "$0!", "1_2!"),
        (r"\Qa.b\E", "a.b", "c", "c"), (r"(?<n>a)\k<n>", "aa", "$1", "a"), ("(a)", "a", "$10", "a0"),
        (r"\P{Upper}\z", "a", r"\\", "\\"), (r"a\h", "a ", "b", "b"),
    ],
)  # fmt: skip
def test_patterns_are_those_of_java(pattern: str, text: str, replacement: str, after: str) -> None:
    found = java_pattern(pattern).fullmatch(text)
    assert found is not None
    assert found.expand(java_replacement(java_pattern(pattern), replacement)) == after


@pytest.mark.parametrize(
    ("replacement", "reason"),
    [("$2", "No group 2"), ("${x}", "No group with name {x}"), ("a$", "Illegal group reference"), ("$x", "Illegal")],
)
def test_a_group_that_there_is_not_is_refused(replacement: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"for configuration replacement: {reason}"):
        applied("RegexRouter", {"regex": "(a)", "replacement": replacement})
    for pattern in (r"\p{L}", "(", r"[\P{Lower}]"):
        with pytest.raises(ConfigError, match="Invalid regex"):
            applied("RegexRouter", {"regex": pattern, "replacement": "x"})


@pytest.mark.parametrize(
    ("name", "config", "kind"),
    [
        ("Cast$Value", {"spec": "a:string"}, pa.timestamp("ms", "UTC")),
        ("HeaderFrom$Value", {"fields": "a", "headers": "h", "operation": "copy"}, pa.timestamp("ms", "UTC")),
        ("io.confluent.connect.transforms.MessageTimestampRouter", {"message.timestamp.keys": "a"}, pa.int64()),
        ("io.confluent.connect.transforms.MessageTimestampRouter", {"message.timestamp.keys": "a"}, pa.timestamp("ms", "UTC")),
    ],
)
def test_a_time_that_python_lacks_is_an_error_of_the_record(name: str, config: dict[str, str], kind: Any) -> None:
    value = pa.array([{"a": 2**62}]).cast(pa.struct([("a", kind)]))
    with pytest.raises(ConnectError, match="cannot change a value"):
        applied(name, config, records([None], value=value, headers=pa.array([[]], HEADERS)))


def test_records_of_two_schemas_become_one_table() -> None:
    required = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    one, other = (pa.table({"value": pa.array([row], kind)}) for row, kind in (({"a": 1}, required), ({"b": "x"}, None)))
    assert values(joined([one, other])) == [{"a": 1, "b": None}, {"a": None, "b": "x"}]


def test_the_schema_of_avro_has_the_name_that_a_transform_gives() -> None:
    made = Chain({"transforms": "x", "transforms.x.type": "SetSchemaMetadata$Value", "transforms.x.schema.name": "com.example.Order",
                  "transforms.x.schema.version": "2"})  # fmt: skip
    changed = made.apply(records([{"a": 1}]))
    metadata = metadata_of(changed, "value")
    assert (name_of(metadata), version_of(metadata)) == ("com.example.Order", 2)
    text = AvroConverter({"schema.registry.url": "http://127.0.0.1:1"}, is_key=False).record(
        changed.schema.field("value").type, name_of(metadata) or "", version_of(metadata)
    )
    found = json.loads(text)
    assert [found[key] for key in ("name", "namespace", "connect.name", "connect.version")] == [
        "Order", "com.example", "com.example.Order", 2,
    ]  # fmt: skip
