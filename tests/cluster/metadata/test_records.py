"""Partition states in entries of the store: what is written is what is read, by whichever way."""

from __future__ import annotations

import json
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from barnabas.cluster.metadata import records
from barnabas.cluster.metadata.declared import Kind
from barnabas.cluster.metadata.image import PartitionState, Topic
from barnabas.protocol.values import ResourceType

IDS = st.lists(st.integers(0, 300), max_size=4, unique=True).map(tuple)
STATES = st.builds(
    PartitionState,
    st.integers(-1, 300),
    st.integers(0, 2**31 - 1),
    IDS,
    IDS,
    st.integers(0, 2**31 - 1),
    st.just(()) | IDS,
    st.just(()) | IDS,
    st.just(()) | IDS,
)


def chunk_of(states: tuple[PartitionState, ...]) -> bytes:
    ((_, value),) = records.chunks_of(Topic("t", UUID(int=1), states))
    return value


@given(st.lists(STATES, min_size=1, max_size=20).map(tuple))
def test_a_chunk_is_json_and_read_as_it_was_written(states: tuple[PartitionState, ...]) -> None:
    value = chunk_of(states)
    assert value == records.encode(json.loads(value))
    assert records.decode_chunk(value) == states


@given(st.lists(st.tuples(STATES, STATES, st.booleans()), min_size=1, max_size=20))
def test_what_is_known_already_does_not_change_what_is_read(pairs: list[tuple[PartitionState, PartitionState, bool]]) -> None:
    before = tuple(old for old, _, _ in pairs)
    after = tuple(old if same else replace(new, partition_epoch=old.partition_epoch + 1) for old, new, same in pairs)
    read = records.decode_chunk(chunk_of(after), before)
    assert read == after
    assert all(read[i] is before[i] for i, (_, _, same) in enumerate(pairs) if same)


def test_the_paths_of_entries_are_told_from_those_of_others() -> None:
    ours = [
        records.CLUSTER,
        records.CONTROLLER,
        records.CONTROLLER_EPOCH,
        records.PRODUCER_IDS,
        records.BROKER_EPOCH,
        records.broker_path(1),
        records.topic_path("t"),
        records.chunk_path("t", 123_456),
        records.config_path((ResourceType.TOPIC, "t")),
        records.config_path((ResourceType.BROKER, "")),
        records.deleted_topic_path(UUID(int=1)),
        *(records.declaration_path(kind, "User:a/b\n") for kind in Kind),
    ]
    assert [path for path in ours if not records.is_own(path)] == []
    theirs = [
        "/",
        "/clusters",
        "/cluster/id",
        "/brokers/ids/1",
        "/brokers/x",
        "/topics",
        "/topics/t/0",
        "/partitions/t/x",
        "/x/topics/t",
    ]
    assert [path for path in theirs if records.is_own(path)] == []
