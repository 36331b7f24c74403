"""A null in a row stays null in the record, or is refused: nothing becomes an empty value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.columnar.decode import HEADER_TYPE
from barnabas.pipelines.offsets import OffsetRange, OptionError
from barnabas.pipelines.read_task import ReadTask
from barnabas.pipelines.reading import read_range
from barnabas.pipelines.sink_options import WriteTask
from barnabas.pipelines.writing import open_idempotent, write_batches

MakeTopic = Callable[..., str]
H, N = {"key": "h", "value": b"x"}, {"key": "n", "value": None}
EMPTY = {"key": "", "value": b""}
COLUMNS: dict[str, tuple[Any, list[Any]]] = {
    "key": (pa.binary(), [None, b"", b"k"]),
    "text key": (pa.string(), [None, "", "k"]),
    "value": (pa.binary(), [None, b"", b"v"]),
    "text value": (pa.string(), [None, "", "v"]),
    "headers": (HEADER_TYPE, [None, [], [H], [N], [EMPTY], [H, N, EMPTY]]),
    "partition": (pa.int32(), [None, 0]),
}
REFUSED: dict[str, tuple[list[Any], str]] = {
    "a header is null": ([[H], [H, None]], "null header present in the data"),
    "the only header is null": ([[None]], "null header present in the data"),
    "a header has a null key": ([[H], [{"key": None, "value": b"x"}]], "null header key present in the data"),
    "a header is of nulls": ([[{"key": None, "value": None}]], "null header key present in the data"),
}


def write(client: BlockingClient, topic: str | None, columns: dict[str, Any]) -> None:
    task = WriteTask(topic, client=client.config)
    batch = pa.RecordBatch.from_pydict(columns)
    # As one batch, and as slices whose buffers start at an offset.
    for pieces in ([batch], [batch.slice(i, 1) for i in range(batch.num_rows)]):
        write_batches(task, iter(pieces), open_idempotent(task))


def read(client: BlockingClient, topic: str, count: int) -> list[dict[str, Any]]:
    task = ReadTask(OffsetRange(topic, 0, 0, count), client.config, True, True, 10_000)
    return [row for batch in read_range(task) for row in batch.to_pylist()]


@pytest.mark.parametrize("name", COLUMNS)
def test_nulls_and_empties_come_back_as_they_were(name: str, client: BlockingClient, topic: MakeTopic) -> None:
    kind, given = COLUMNS[name]
    column, target = name.removeprefix("text "), topic()
    values = pa.array([b"v"] * len(given), pa.binary())
    write(client, target, {"value": values, column: pa.array(given, kind)})
    found = [row[column] for row in read(client, target, 2 * len(given))]
    wanted = [each.encode() if isinstance(each, str) else each for each in given]
    if column == "partition":
        wanted = [0] * len(given)
    if column == "headers":
        wanted = [each or None for each in given]  # an empty list of headers comes back as null
    assert found == wanted * 2


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_form_in_a_record_is_refused(name: str, client: BlockingClient, topic: MakeTopic) -> None:
    headers, message = REFUSED[name]
    columns = {"value": pa.array([b"v"] * len(headers), pa.binary()), "headers": pa.array(headers, HEADER_TYPE)}
    with pytest.raises(OptionError, match=message):
        write(client, topic(), columns)


def test_headers_of_rows_that_have_none_do_not_count(client: BlockingClient, topic: MakeTopic) -> None:
    """A list that is null may have something beneath, which nobody sees."""
    target = topic()
    items = pa.StructArray.from_arrays([pa.array([None, "h"]), pa.array([b"x", b"y"])], fields=list(HEADER_TYPE.value_type))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), items, mask=pa.array([True, False])).cast(HEADER_TYPE)
    write(client, target, {"value": pa.array([b"a", b"b"], pa.binary()), "headers": lists})
    assert [row["headers"] for row in read(client, target, 4)] == [None, [{"key": "h", "value": b"y"}]] * 2


def test_a_null_topic_is_refused_where_the_column_is_asked(client: BlockingClient, topic: MakeTopic) -> None:
    columns = {"value": pa.array([b"v", b"w"], pa.binary()), "topic": pa.array([topic(), None], pa.string())}
    with pytest.raises(OptionError, match="null topic present in the data"):
        write(client, None, columns)
    write(client, target := topic(), columns)
    assert [row["value"] for row in read(client, target, 4)] == [b"v", b"w"] * 2
