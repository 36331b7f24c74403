"""Functions that convert records to rows and back in PySpark: JSON values with a schema, values with schemas of a registry, and a
compacted topic as a table.

    orders = from_barnabas(spark.readStream.format("barnabas")...load(), "customer string, amount double")
    orders.select("value.customer", "value.amount", "timestamp")
    orders = from_barnabas(spark.readStream.format("barnabas")...load(), registered("orders-value"))

Works with a classic session and through Spark Connect, on batches and on streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.pipelines.offsets import OptionError
from barnabas.pipelines.registered import Registered, decoded, encoded, registered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["as_table", "from_barnabas", "registered", "to_barnabas"]

PERMISSIVE, DROP_MALFORMED, FAIL_FAST = "PERMISSIVE", "DROPMALFORMED", "FAILFAST"
CORRUPT = "_corrupt_value"
BLANK = "a value is blank, which is not JSON"


def from_barnabas(
    frame: DataFrame,
    schema: str | StructType | Registered,
    *,
    key_schema: str | StructType | Registered | None = None,
    mode: str = PERMISSIVE,
) -> DataFrame:
    """The records of a topic with their values (and keys) parsed.

    The columns stay; `value` becomes a struct of `schema` and `key` a string, or a struct of `key_schema`. A null value stays null.
    With a `registered` schema, each value is decoded with the schema that the record names, and converted to the registered one.

    Args:
        schema: fields of JSON values, as `"customer string, amount double"` or a StructType; or `registered(subject)`.
        mode: the handling of a value that does not fit the schema, such as a blank one. PERMISSIVE: `value` is null and the column
            `_corrupt_value` has its text; DROPMALFORMED: the row is left out; FAILFAST: the query fails. With a registered schema,
            `_corrupt_value` (and `_corrupt_key`) has the bytes, and `_corrupt_reason` says why.

    Raises:
        ValueError: an unknown mode, or a registered schema for the keys alone.
    """
    from pyspark.sql import functions as F

    if mode not in (PERMISSIVE, DROP_MALFORMED, FAIL_FAST):
        raise ValueError(f"mode must be {PERMISSIVE}, {DROP_MALFORMED} or {FAIL_FAST}, got {mode}")
    if isinstance(schema, Registered):
        if isinstance(key_schema, Registered):
            return decoded(frame, schema, key_schema, mode)
        key = F.col("key").cast("string")
        return decoded(frame, schema, None, mode).withColumn(
            "key", F.from_json(key, key_schema) if key_schema is not None else key
        )
    if isinstance(key_schema, Registered):
        raise ValueError("a registered key_schema goes with a registered schema")
    key = F.col("key").cast("string")
    if key_schema is not None:
        key = F.from_json(key, key_schema)
    text = F.col("value").cast("string")
    is_blank = text.rlike(r"\A\s*\z")  # from_json returns null for blank text, as for a missing value
    if mode == FAIL_FAST:
        strict = F.from_json(text, schema, {"mode": FAIL_FAST})
        return frame.withColumns({"key": key, "value": F.when(is_blank, F.raise_error(F.lit(BLANK))).otherwise(strict)})
    options = {"mode": PERMISSIVE, "columnNameOfCorruptRecord": CORRUPT}
    value = F.from_json(text, _with_corrupt(schema), options)
    parsed = frame.withColumns({"key": key, "value": value, CORRUPT: F.when(is_blank, text)})
    parsed = parsed.withColumn(CORRUPT, F.coalesce(F.col(CORRUPT), F.col(f"value.{CORRUPT}")))
    parsed = parsed.withColumn("value", F.when(F.col(CORRUPT).isNull(), F.col("value").dropFields(CORRUPT)))
    return parsed.where(F.col(CORRUPT).isNull()).drop(CORRUPT) if mode == DROP_MALFORMED else parsed


def to_barnabas(
    frame: DataFrame,
    *,
    key: str | None = None,
    value: Sequence[str] | None = None,
    schema: Registered | None = None,
    key_schema: Registered | None = None,
    ids: str = "payload",
) -> DataFrame:
    """Rows as records: `key` and `value` for `format("barnabas")`, the value as JSON or by a `registered` schema.

    Args:
        key: the column that becomes the key; its text (JSON if it is a struct, an array or a map), unless there is a `key_schema`.
            None: records without keys.
        value: the columns in the value; None: all of them, except a key that the schema does not have.
        schema: of the values. A field without a column has its default.
        ids: the place of the schemas' ids: in the `payload`, or in `headers`, which adds the column.

    Raises:
        OptionError: columns that the schema does not have, or a `key_schema` without its `key` or `schema`.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if key_schema is not None and (key is None or schema is None):
        raise OptionError("key_schema needs a key and a schema")
    made = None
    if key is not None:
        nested = isinstance(frame.schema[key].dataType, StructType | ArrayType | MapType)
        made = F.col(key) if key_schema is not None else F.to_json(key) if nested else F.col(key).cast("string")
    if schema is not None:
        columns = value or [name for name in frame.columns if name != key or schema.has_field(name)]
        return encoded(frame, columns, schema, made, key_schema, ids)
    record = F.to_json(F.struct(*(value or frame.columns))).alias("value")
    return frame.select(record) if made is None else frame.select(made.alias("key"), record)


def as_table(frame: DataFrame) -> DataFrame:
    """The newest record of each key, with the semantics of a compacted topic: a null value deletes its key, records without
    keys are left out.

    The result is a batch frame; with `resolveOffsets=task`, a join with a stream sees the current table at each micro-batch.
    """
    from pyspark.sql import functions as F

    columns = [name for name in frame.columns if name not in ("topic", "key")]
    newest = frame.where("key is not null").groupBy("topic", "key").agg(F.max_by(F.struct(*columns), "offset").alias("newest"))
    return newest.where("newest.value is not null").select("key", "topic", "newest.*")


def _with_corrupt(schema: str | StructType) -> str | StructType:
    if isinstance(schema, str):
        return f"{schema}, {CORRUPT} string"
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([*schema.fields, StructField(CORRUPT, StringType())])
