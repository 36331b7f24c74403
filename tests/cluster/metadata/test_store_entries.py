"""Partition states in entries of the store: what is written is what is read, by whichever way."""

from __future__ import annotations

import json
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from barnabas.cluster.metadata import store_entries
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
    ((_, value),) = store_entries.chunks_of(Topic("t", UUID(int=1), states))
    return value


@given(st.lists(STATES, min_size=1, max_size=20).map(tuple))
def test_a_chunk_is_json_and_read_as_it_was_written(states: tuple[PartitionState, ...]) -> None:
    value = chunk_of(states)
    assert value == store_entries.encode(json.loads(value))
    assert store_entries.decode_chunk(value) == states


@given(st.lists(st.tuples(STATES, STATES, st.booleans()), min_size=1, max_size=20))
def test_what_is_known_already_does_not_change_what_is_read(pairs: list[tuple[PartitionState, PartitionState, bool]]) -> None:
    before = tuple(old for old, _, _ in pairs)
    after = tuple(old if same else replace(new, partition_epoch=old.partition_epoch + 1) for old, new, same in pairs)
    read = store_entries.decode_chunk(chunk_of(after), before)
    assert read == after
    assert all(read[i] is before[i] for i, (_, _, same) in enumerate(pairs) if same)


def test_the_paths_of_entries_are_told_from_those_of_others() -> None:
    ours = [
        store_entries.CLUSTER,
        store_entries.CONTROLLER,
        store_entries.CONTROLLER_EPOCH,
        store_entries.PRODUCER_IDS,
        store_entries.BROKER_EPOCH,
        store_entries.broker_path(1),
        store_entries.topic_path("t"),
        store_entries.chunk_path("t", 123_456),
        store_entries.config_path((ResourceType.TOPIC, "t")),
        store_entries.config_path((ResourceType.BROKER, "")),
        store_entries.deleted_topic_path(UUID(int=1)),
        *(store_entries.declaration_path(kind, "User:a/b\n") for kind in Kind),
    ]
    assert [path for path in ours if not store_entries.is_own(path)] == []
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
    assert [path for path in theirs if store_entries.is_own(path)] == []
