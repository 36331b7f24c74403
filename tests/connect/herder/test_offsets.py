"""Offsets in requests, answers and records."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.connect.herder.offsets import items_of, shown_of_sink, shown_of_source, sink_offsets, source_changes
from barnabas.web.routing import HttpError

KEY = '["a",{"b":1,"a":2}]'
RECORDS = {KEY: {"position": 6}, '["b",{}]': {"position": 1}, "no json": 5, '["a",{"x":1}]': None}


def item(partition: Any, offset: Any) -> tuple[Any, Any]:
    return partition, offset


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({}, 400, "Partitions / offsets need to be provided for an alter offsets request"),
        ({"offsets": []}, 400, "Partitions / offsets need to be provided for an alter offsets request"),
        (None, 500, "no object"), ([], 500, "no object"), ({"offset": []}, 500, 'Unrecognized field "offset"'),
        ({"offsets": [1]}, 500, "a list of objects"), ({"offsets": [{"partition": 5}]}, 500, "the partition of an offset"),
        ({"offsets": [{"huh": 5}]}, 500, 'Unrecognized field "huh"'),
    ],
)  # fmt: skip
def test_bodies_that_say_no_offsets_are_refused(body: Any, status: int, says: str) -> None:
    with pytest.raises(HttpError, match=says) as raised:
        items_of(body)
    assert raised.value.status == status


def test_offsets_of_a_sink() -> None:
    place = {"kafka_topic": "t", "kafka_partition": "0"}
    assert sink_offsets([item(place, {"kafka_offset": "7"}), item({**place, "kafka_partition": 1}, None)]) == {
        ("t", 0): 7, ("t", 1): None,
    }  # fmt: skip
    assert shown_of_sink({("t", 1): 2, ("t", 0): 7})[0] == {
        "partition": {"kafka_partition": 0, "kafka_topic": "t"}, "offset": {"kafka_offset": 7},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("partition", "offset", "says"),
    [
        (None, {"kafka_offset": 1}, "cannot be null or missing"),
        ({"kafka_topic": "t"}, {"kafka_offset": 1}, "must contain the keys 'kafka_topic' and 'kafka_partition'"),
        ({"kafka_topic": "t", "kafka_partition": "x"}, {"kafka_offset": 1}, "Kafka partition value in the provided offsets: 'x'"),
        ({"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": "x"}, "Kafka offset value in the provided offsets: 'x'"),
        ({"kafka_topic": "t", "kafka_partition": 0}, {}, "should either be null or contain the key 'kafka_offset'"),
    ],
)
def test_wrong_offsets_of_a_sink_are_named(partition: Any, offset: Any, says: str) -> None:
    with pytest.raises(HttpError, match=says) as raised:
        sink_offsets([(partition, offset)])
    assert raised.value.status == 400


def test_offsets_of_a_source() -> None:
    assert shown_of_source(RECORDS, "a") == [{"partition": {"b": 1, "a": 2}, "offset": {"position": 6}}]
    changes = source_changes(RECORDS, "a", [item({"a": 2, "b": 1}, {"position": 9}), item({"new": 1}, {"position": 1})])
    assert changes == {KEY: {"position": 9}, '["a",{"new":1}]': {"position": 1}}
    assert source_changes(RECORDS, "a", [item({"a": 2, "b": 1}, None), item({"unknown": 1}, None)]) == {KEY: None}
    assert all(json.loads(key)[0] == "a" for key in changes)
