"""JSON helpers and tables, on rows that need no broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from barnabas.pipelines.functions import as_table, from_barnabas, to_barnabas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
SCHEMA = "a int, b string"


def records(spark: SparkSession, *rows: tuple[bytes | None, bytes | None]) -> DataFrame:
    numbered = [(key, value, "t", offset) for offset, (key, value) in enumerate(rows)]
    return spark.createDataFrame(numbered, "key binary, value binary, topic string, offset long")


def test_values_by_a_schema(spark: SparkSession) -> None:
    from pyspark.sql.types import IntegerType, StructField, StructType

    frame = records(spark, (b"k", b'{"a":1,"b":"x"}'), (None, None), (b"l", b"{broken"), (b"m", b'{"a":"no number"}'))
    parsed = from_barnabas(frame, SCHEMA)
    assert parsed.columns == ["key", "value", "topic", "offset", "_corrupt_value"]
    found = [(r.key, r.value and r.value.asDict(), r["_corrupt_value"]) for r in parsed.orderBy("offset").collect()]
    assert found == [
        ("k", {"a": 1, "b": "x"}, None),
        (None, None, None),
        ("l", None, "{broken"),
        ("m", None, '{"a":"no number"}'),
    ]
    kept = from_barnabas(frame, StructType([StructField("a", IntegerType())]), mode="DROPMALFORMED").orderBy("offset").collect()
    assert [(row.key, row.value and row.value.a) for row in kept] == [("k", 1), (None, None)]
    with pytest.raises(Exception, match="MALFORMED_RECORD_IN_PARSING"):
        from_barnabas(frame, SCHEMA, mode="FAILFAST").collect()
    with pytest.raises(ValueError, match="mode must be PERMISSIVE, DROPMALFORMED or FAILFAST, got LENIENT"):
        from_barnabas(frame, SCHEMA, mode="LENIENT")


def test_rows_as_records_and_back(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, "x", (7,))], "a int, b string, id struct<n: int>")
    (plain,) = to_barnabas(rows, key="a", value=["a", "b"]).collect()
    assert (plain.key, plain.value) == ("1", '{"a":1,"b":"x"}')
    (nested,) = to_barnabas(rows, key="id").collect()
    assert nested.key == '{"n":7}'
    assert to_barnabas(rows).columns == ["value"]
    back = from_barnabas(to_barnabas(rows, key="id"), SCHEMA, key_schema="n int").collect()
    assert (back[0].key.n, back[0].value.b) == (7, "x")


def test_a_topic_as_a_table(spark: SparkSession) -> None:
    frame = records(spark, (b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"b", None), (None, b"4"))
    rows: list[Any] = as_table(frame).collect()
    assert [(bytes(row.key), bytes(row.value), row.offset) for row in rows] == [(b"a", b"3", 2)]
