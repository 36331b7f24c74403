"""The format of `__consumer_offsets`. The golden bytes were written by Kafka 4.3.0."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    group_record,
    offset_record,
    read_group_value,
    read_key,
    read_offset_value,
)
from barnabas.errors import MalformedMessage
from barnabas.protocol.codec import encode

EMPTY_GROUP = (
    b"\x00\x02\x00\x03bad",
    b"\x00\x03\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x01\xa1\xfd\xa7t\xf5\x00\x00\x00\x00",
)
STATIC_MEMBER = b"ia-5bd05c01-6374-40a2-89ae-2022dd0beddd"
SUBSCRIPTION = b"\x00\x01\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"
STATIC_GROUP = (
    b"\x00\x02\x00\x06Sk8408",
    b"\x00\x03\x00\x08consumer\x00\x00\x00\x01\x00\x05range\x00'" + STATIC_MEMBER + b"\x00\x00\x01\xa1\xfd\xb4\x8d!"
    b"\x00\x00\x00\x01\x00'" + STATIC_MEMBER + b"\x00\x02ia\x00\x01a\x00\n/127.0.0.1\x00\x00\x0f\xa0\x00\x00\x0f\xa0"
    b"\x00\x00\x00\r" + SUBSCRIPTION + b"\x00\x00\x00\x01A",
)
OFFSET = (
    b"\x00\x01\x00\x06simple\x00\x01t\x00\x00\x00\x00",
    b"\x00\x04\x00\x00\x00\x00\x00\x00\x00\x05\xff\xff\xff\xff\x02m\x00\x00\x01\xa1\xfd\xa7{E"
    b"\x01\x00\x10\xa0\x90\xfd1\x9c\xc2At\xb5\x89Lh\xdd]\xfc^",
)
OFFSET_WITH_EXPIRY = (
    b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00",
    b"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x05\x00\x01m\x00\x00\x01\xa1\xfd\xa7{<\x00\x00\x01\xa1\xfd\xa9\x01\xdc",
)


@pytest.mark.parametrize("record", [EMPTY_GROUP, STATIC_GROUP])
def test_groups_are_written_as_kafka_writes_them(record: tuple[bytes, bytes]) -> None:
    key = read_key(record[0])
    assert isinstance(key, GroupMetadataKey)
    assert group_record(key.group, read_group_value(record[1])) == record


@pytest.mark.parametrize("record", [OFFSET, OFFSET_WITH_EXPIRY])
def test_offsets_are_written_as_kafka_writes_them(record: tuple[bytes, bytes]) -> None:
    key = read_key(record[0])
    assert isinstance(key, OffsetCommitKey)
    assert offset_record(key.group, key.topic, key.partition, read_offset_value(record[1])) == record


def test_a_group_of_kafka_is_understood() -> None:
    value = read_group_value(STATIC_GROUP[1])
    assert (value.protocol_type, value.generation, value.protocol) == ("consumer", 1, "range")
    member = value.members[0]
    assert (member.group_instance_id, member.client_id, member.client_host) == ("ia", "a", "/127.0.0.1")
    assert (member.subscription, member.assignment) == (SUBSCRIPTION, b"A")


def test_tombstones_have_no_value() -> None:
    assert group_record("bad", None) == (EMPTY_GROUP[0], None)
    assert offset_record("simple", "t", 0, None) == (OFFSET[0], None)


def test_the_oldest_offset_key_is_read() -> None:
    key = read_key(b"\x00\x00" + OFFSET[0][2:])
    assert key == OffsetCommitKey(group="simple", topic="t", partition=0)


@pytest.mark.parametrize("record_type", [3, 5, 16, 1000])
def test_records_of_other_group_types_are_left_alone(record_type: int) -> None:
    assert read_key(record_type.to_bytes(2, "big") + b"\x00\x01g") is None


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_group_is_read(version: int) -> None:
    value = GroupMetadataValue(protocol_type="consumer", members=[MemberMetadata(member_id="m", subscription=b"s")])
    assert read_group_value(version.to_bytes(2, "big") + encode(value, version)) == value


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_an_offset_is_read(version: int) -> None:
    value = OffsetCommitValue(offset=7, metadata="m", commit_timestamp_ms=3)
    assert read_offset_value(version.to_bytes(2, "big") + encode(value, version)) == value


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x05", b"\xff\xff\x00", b"\x00\x04\x00"])
def test_values_that_are_none_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_offset_value(data)
    with pytest.raises(MalformedMessage):
        read_group_value(data)


@given(st.binary(max_size=64))
def test_whatever_the_bytes_only_malformed_is_raised(data: bytes) -> None:
    for read in (read_key, read_offset_value, read_group_value):
        try:
            read(data)
        except MalformedMessage:
            continue
