"""The process of `spark_queries.SparkQueries`: `python -m barnabas.engine.driver.queries`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import pyarrow as pa

from barnabas.engine.driver.rows import TableRows
from barnabas.engine.jobs import InputTable
from barnabas.engine.spark_queries import TASK_VARIABLE, Answer, Question
from barnabas.pipelines import session
from barnabas.pipelines.functions import as_table
from barnabas.pipelines.runs.process import LEAVE_S, guard_group
from barnabas.schemas.arrow.columns import RegistryAddress
from barnabas.tables.row_names import KEY_WORD, MAGIC, SIZE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_AT_ONCE = 8_192
CONF = {"spark.log.level": "ERROR"}


def main() -> None:
    """Answer questions until standard input ends."""
    task = msgspec.json.decode(os.environ.pop(TASK_VARIABLE))
    guard_group(LEAVE_S)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what Spark prints must not stand between the answers
    spark = session("barnabas-sql", master=task["master"], conf=CONF)
    questions = msgspec.json.Decoder(Question)
    for line in sys.stdin.buffer:
        answer(spark, task["settings"], questions.decode(line), answers)
        answers.flush()
    spark.stop()


def answer(spark: SparkSession, settings: Mapping[str, str], question: Question, answers: BinaryIO) -> None:
    """Write the answer to one question."""
    try:
        spark.conf.set("spark.sql.session.timeZone", question.zone)
        for name, table in question.tables.items():
            frame_of(spark, settings, table, question.filled.get(name, {}), question.registry).createOrReplaceTempView(name)
        frame = spark.sql(question.text, args=dict(question.values)) if question.values else spark.sql(question.text)
        found = (frame if question.has_rows else frame.limit(0)).toArrow()
    except Exception as error:  # noqa: BLE001 - Spark has many types of errors, and the caller gets each
        answers.write(msgspec.json.encode(fault_of(error)) + b"\n")
        return
    answers.write(msgspec.json.encode(Answer()) + b"\n")
    with pa.ipc.new_stream(answers, found.schema) as stream:  # type: ignore[arg-type]  # a file of bytes is enough
        for batch in found.to_batches(ROWS_AT_ONCE):
            stream.write_batch(batch)


def frame_of(
    spark: SparkSession,
    settings: Mapping[str, str],
    table: InputTable,
    filled: Mapping[str, str],
    registry: RegistryAddress | None,
) -> DataFrame:
    """A table as Spark reads it: the newest rows of a keyed one."""
    records = (
        spark.read.format("barnabas")
        .option("subscribe", table.topic)
        .option("includeHeaders", True)
        .options(**{f"kafka.{name}": value for name, value in settings.items()})
        .load()
    )
    if table.is_keyed:
        records = newest_of_names(records) if table.key == KEY_WORD else as_table(records)
        table = msgspec.structs.replace(table, is_keyed=False)
    made = TableRows(table, registry)
    schema = made.of(NO_RECORDS).select(list(table.names)).schema
    rows = records.mapInArrow(Decode(table, registry), spark_schema(schema))
    return rows.selectExpr(
        *(f"coalesce(`{name}`, {filled[name]}) AS `{name}`" if name in filled else f"`{name}`" for name in table.names)
    )


def newest_of_names(records: DataFrame) -> DataFrame:
    """The newest record of each row, where rows have names: what `tables.row_names` says, in Spark's SQL."""
    from pyspark.sql import functions as F

    begin = f"concat(X'{MAGIC.hex()}', unhex(lpad(hex(partition), 8, '0')))"
    named = f"try_cast(conv(hex(substring(key, {SIZE - 7}, 8)), 16, 10) AS BIGINT)"
    is_name = f"length(key) = {SIZE} AND substring(key, 1, {SIZE - 8}) = {begin} AND {named} BETWEEN 0 AND offset"
    row, columns = "_of_row", [name for name in records.columns if name not in ("topic", "partition")]
    named_records = records.withColumn(row, F.expr(f"CASE WHEN {is_name} THEN {named} ELSE offset END"))
    newest = named_records.groupBy("topic", "partition", row).agg(F.max_by(F.struct(*columns), "offset").alias("newest"))
    return newest.where("newest.value IS NOT NULL").select("topic", "partition", "newest.*")


NO_RECORDS = pa.table(
    {
        "key": pa.array([], pa.binary()),
        "value": pa.array([], pa.binary()),
        "topic": pa.array([], pa.string()),
        "partition": pa.array([], pa.int32()),
        "offset": pa.array([], pa.int64()),
        "timestamp": pa.array([], pa.timestamp("us", tz="UTC")),
    }
)


def spark_schema(schema: pa.Schema) -> Any:
    """Spark's schema of these columns. Raises for a type that Spark does not have."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


class Decode:
    """The function that runs over the records of a partition."""

    def __init__(self, table: InputTable, registry: RegistryAddress | None) -> None:
        self._table, self._registry = table, registry

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = TableRows(self._table, self._registry)
        for batch in batches:
            yield from rows.of(pa.Table.from_batches([batch])).select(list(self._table.names)).to_batches()


def fault_of(error: Exception) -> Answer:
    """Spark's error in one line."""
    state = getattr(error, "getSqlState", lambda: None)()
    text = str(getattr(error, "desc", None) or error)
    first = re.split(r"\n\s*\n|\n== |\nJVM stacktrace", text.strip())[0]
    return Answer(" ".join(first.split())[:2_000] or type(error).__name__, state)


if __name__ == "__main__":
    main()
