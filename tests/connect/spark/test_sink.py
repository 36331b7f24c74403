"""Records that Spark writes as files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from barnabas.connect.api import Identity
from barnabas.connect.errors import BadRecords, ConnectError
from barnabas.connect.plugins.spark.sink import SparkSink, rows_of
from tests.connect.runtime.tasks import JSON, Tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SINK = "barnabas.SparkSink"


def rows_in(tasks: Tasks, *columns: str) -> Sequence[Any]:
    assert tasks.spark is not None
    if not list((tasks.folder / "out").glob("batch=*/*.parquet")):
        return []
    return [tuple(row) for row in tasks.spark.read.parquet(str(tasks.folder / "out")).select(*columns).sort(*columns).collect()]


def test_records_become_rows_of_a_folder(spark_tasks: Tasks) -> None:
    tasks = spark_tasks
    tasks.create_topic(2)
    tasks.produce('{"id": 1, "tags": ["a"]}', '{"id": 2, "tags": []}', None, key='"k"')
    tasks.produce('{"id": 3, "tags": null}', partition=1)
    config = {"format": "parquet", "path": str(tasks.folder / "out"), "topics": tasks.topic, "record.fields": "key,partition"}
    with tasks.running(tasks.job(SINK, "sink", config, JSON)) as task:
        tasks.until(lambda: len(rows_in(tasks, "id")) == 3, task, "the rows are not there")
    assert rows_in(tasks, "id", "key", "partition") == [(1, "k", 0), (2, "k", 0), (3, None, 1)]


def sink_of(spark: SparkSession, tasks: Tasks, **more: str) -> SparkSink:
    made = SparkSink()
    made.spark = spark
    given = {"format": "parquet", "path": str(tasks.folder / "out"), **more}
    made.open({**given, **SparkSink.config.parse(given)})
    return made


def test_a_batch_that_comes_again_replaces_its_rows(spark_tasks: Tasks, spark: SparkSession) -> None:
    made = sink_of(spark, spark_tasks)
    first, second = (Identity("c", {("t", 0): each}) for each in ((0, 2), (2, 3)))
    records = pa.table({"value": [{"id": 1}, {"id": 2}], "topic": ["t", "t"]})
    for identity, some in ((first, records), (first, records), (second, records.slice(1)), (first, records)):
        made.write(some, identity)
    assert rows_in(spark_tasks, "id") == [(1,), (2,), (2,)]


def test_values_that_are_missing(spark_tasks: Tasks, spark: SparkSession) -> None:
    made = sink_of(spark, spark_tasks, **{"behavior.on.null.values": "fail"})
    with pytest.raises(BadRecords) as caught:
        made.write(pa.table({"value": [{"id": 1}, None]}), Identity("c", {("t", 0): (0, 2)}))
    assert list(caught.value.reasons) == [1]


def test_values_of_other_forms_and_names_that_clash() -> None:
    assert rows_of(pa.table({"value": ["a"], "offset": [3]}), ["offset"]).to_pylist() == [{"value": "a", "offset": 3}]
    with pytest.raises(ConnectError, match=r"record\.fields has nothing; a record has value"):
        rows_of(pa.table({"value": ["a"]}), ["nothing"])
    with pytest.raises(ConnectError, match="the value has a field key too"):
        rows_of(pa.table({"value": [{"key": 1}], "key": [1]}), ["key"])


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"format": "parquet"}, "path"), ({"format": "parquet", "path": "/a", "table": "t"}, "table"),
        ({"format": "jdbc", "spark.option.url": "jdbc:x:y"}, "format"),
    ],
)  # fmt: skip
def test_configs_that_do_not_fit_are_refused(config: dict[str, str], key: str) -> None:
    assert list(SparkSink.validate(config)) == [key]
