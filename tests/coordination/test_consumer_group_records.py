"""The records of consumer groups: bytes as the schemas of Kafka's messages say, and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordination.consumer.consumer_group_records import (
    VALUES,
    ConsumerRecordType,
    CurrentValue,
    GroupKey,
    GroupValue,
    Key,
    MemberKey,
    MemberTargetValue,
    MemberValue,
    RegularExpressionKey,
    RegularExpressionValue,
    TargetValue,
    consumer_record,
    read_consumer_key,
    read_consumer_value,
)
from barnabas.coordination.consumer.group import expression_record, group_epoch_record, member_target_record, target_record
from barnabas.coordination.consumer.member import ClassicSide, ConsumerMember, MemberState, Owned
from barnabas.errors import MalformedMessage

TOPIC = UUID(int=0x0102)
TOPIC_BYTES = TOPIC.bytes


def test_a_groups_epoch() -> None:
    key, value = group_epoch_record("g", 7, 0)
    assert key == b"\x00\x03\x00\x01g"
    assert value == b"\x00\x00\x00\x00\x00\x07\x00", "a hash of 0 is left out"
    assert group_epoch_record("g", 7, -2)[1] == b"\x00\x00\x00\x00\x00\x07\x01\x00\x08\xff\xff\xff\xff\xff\xff\xff\xfe"


def test_the_epoch_of_a_target() -> None:
    key, value = target_record("g", 7, 258)
    assert key == b"\x00\x06\x00\x01g"
    assert value == b"\x00\x00\x00\x00\x00\x07\x01\x00\x08\x00\x00\x00\x00\x00\x00\x01\x02"


def test_the_target_of_a_member() -> None:
    key, value = member_target_record("g", "m", {TOPIC: frozenset({1, 0})})
    assert key == b"\x00\x07\x00\x01g\x00\x01m"
    assert value == b"\x00\x00\x02" + TOPIC_BYTES + b"\x03\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00"


def test_a_member() -> None:
    member = ConsumerMember("m", None, "r", "c", "/h", 5, frozenset({"u", "t"}), "", "range")
    key, value = member.to_member_record("g")
    assert key == b"\x00\x05\x00\x01g\x00\x01m"
    assert value == b"\x00\x00\x00\x02r\x02c\x03/h\x03\x02t\x02u\x01\x00\x00\x00\x05\x06range\x01\x00\x01\x00"


def test_where_a_member_is() -> None:
    member = ConsumerMember(
        "m", epoch=5, previous_epoch=4, state=MemberState.UNREVOKED_PARTITIONS, assigned={TOPIC: {0: 3}}, pending_revocation={}
    )
    key, value = member.to_current_record("g")
    assert key == b"\x00\x08\x00\x01g\x00\x01m"
    epochs = b"\x01\x00\x05\x02\x00\x00\x00\x03"  # one tagged field, of five bytes
    assert (
        value
        == b"\x00\x00\x00\x00\x00\x05\x00\x00\x00\x04\x01\x02" + TOPIC_BYTES + b"\x02\x00\x00\x00\x00" + epochs + b"\x01\x00"
    )


def test_a_regular_expression() -> None:
    key, value = expression_record("g", "t.*", RegularExpressionValue(topics=["t1"], version=1, timestamp_ms=2))
    assert key == b"\x00\x10\x00\x01g\x00\x03t.*"
    assert value == b"\x00\x00\x02\x03t1" + (1).to_bytes(8, "big") + (2).to_bytes(8, "big") + b"\x00"


def test_partitions_of_an_older_kafka_have_no_epochs() -> None:
    value = b"\x00\x00\x00\x00\x00\x05\x00\x00\x00\x04\x00\x02" + TOPIC_BYTES + b"\x02\x00\x00\x00\x00\x00\x01\x00"
    member = ConsumerMember("m").with_current_value(read_consumer_value(CurrentValue, value))
    assert member.assigned == {TOPIC: {0: 5}}


def test_a_state_that_nobody_knows_is_unknown() -> None:
    assert ConsumerMember("m").with_current_value(CurrentValue(state=9)).state is MemberState.UNKNOWN


OF_KAFKA = {  # written by Kafka 4.3.0
    "a group's epoch": (b"\x00\x03\x00\rtwo-members-g", b"\x00\x00\x00\x00\x00\x02\x01\x00\x08D\xc5\xc3\xb5\x8c'\xb7\xb9"),
    "the epoch of a target": (
        b"\x00\x06\x00\rtwo-members-g",
        b"\x00\x00\x00\x00\x00\x02\x01\x00\x08\x00\x00\x01\xa2\x07o\xe5\xcd",
    ),
    "a static member": (
        b"\x00\x05\x00\x10static-members-g\x00\x01a",
        b"\x00\x00\x02i\x00\rdifferential\x0b/127.0.0.1\x02\x11static-members-t\x01\x00\x00\xea`\x00\x01\x00\x01\x00",
    ),
    "a classic member": (
        b"\x00\x05\x00\x0bmigration-g\x00\x03old",
        b"\x00\x00\x00\x00\rdifferential\x0b/127.0.0.1\x02\x0cmigration-t\x01\x00\x00u0\x00\x01\x007\x01\x00\x00u0\x02\x13cooperative-sticky"
        b"\x1c\x00\x01\x00\x00\x00\x01\x00\x0bmigration-t\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00",
    ),
    "a member with an expression": (
        b"\x00\x05\x00\x15regular-expressions-g\x00\x01m",
        b"\x00\x00\x00\x00\rdifferential\x0b/127.0.0.1\x01\x1aregular-expressions-re-.*\x00\x00\xea`\x00\x01\x00\x01\x00",
    ),
    "an expression": (
        b"\x00\x10\x00\x15regular-expressions-g\x00\x19regular-expressions-re-.*",
        b"\x00\x00\x02\x1bregular-expressions-re-one\x00\x00\x00\x00\x00\x00\x004\x00\x00\x01\xa2\x07o\xe7\xc4\x00",
    ),
    "what a member is to have": (
        b"\x00\x07\x00\rtwo-members-g\x00\x01b",
        b"\x00\x00\x02\xa5\x1b\xf9G)0L\xc7\x80\xba\x18D\x98\x90\x0b\xf1\x03\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00",
    ),
    "a member that has to give up two of four": (
        b"\x00\x08\x00\rtwo-members-g\x00\x01a",
        b"\x00\x00\x00\x00\x00\x02\x00\x00\x00\x02\x01\x02\xa5\x1b\xf9G)0L\xc7\x80\xba\x18D\x98\x90\x0b\xf1\x03\x00\x00\x00\x00"
        b"\x00\x00\x00\x01\x01\x00\t\x03\x00\x00\x00\x02\x00\x00\x00\x02\x02\xa5\x1b\xf9G)0L\xc7\x80\xba\x18D\x98\x90\x0b\xf1\x03"
        b"\x00\x00\x00\x02\x00\x00\x00\x03\x01\x00\t\x03\x00\x00\x00\x02\x00\x00\x00\x02\x00",
    ),
    "a member that waits for what others have": (
        b"\x00\x08\x00\rtwo-members-g\x00\x01b",
        b"\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x02\x01\x01\x00",
    ),
}


@pytest.mark.parametrize("what", OF_KAFKA)
def test_records_are_written_as_kafka_writes_them(what: str) -> None:
    """Members by what is made of them, for that is what is written."""
    data, body = OF_KAFKA[what]
    found = read_consumer_key(data)
    assert found is not None
    kind, key = found
    value = read_consumer_value(VALUES[kind], body)
    assert consumer_record(kind, key, value) == (data, body)
    if isinstance(value, MemberValue | CurrentValue):
        assert isinstance(key, MemberKey)
        member = ConsumerMember(key.member)
        if isinstance(value, MemberValue):
            assert member.with_member_value(value).to_member_record(key.group) == (data, body)
        else:
            assert member.with_current_value(value).to_current_record(key.group) == (data, body)


NAMES = st.text(max_size=8)
OWNED = st.dictionaries(st.uuids(), st.dictionaries(st.integers(0, 9), st.integers(0, 99), min_size=1), max_size=3)
MEMBERS = st.builds(
    ConsumerMember,
    st.just("m"),
    instance_id=st.none() | NAMES,
    rack_id=st.none() | NAMES,
    client_id=NAMES,
    client_host=NAMES,
    rebalance_timeout_ms=st.integers(-1, 2**31 - 1),
    topics=st.frozensets(NAMES),
    regex=NAMES,
    server_assignor=st.none() | NAMES,
    classic=st.none()
    | st.builds(ClassicSide, st.integers(0, 2**31 - 1), st.lists(st.tuples(NAMES, st.binary(max_size=8))).map(tuple)),
    epoch=st.integers(-2, 2**31 - 1),
    previous_epoch=st.integers(-2, 2**31 - 1),
    state=st.sampled_from([MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS]),
    assigned=OWNED,
    pending_revocation=OWNED,
)


@given(MEMBERS)
def test_a_member_is_the_same_after_both_its_records(member: ConsumerMember) -> None:
    told, current = member.to_member_record("g")[1], member.to_current_record("g")[1]
    assert told is not None
    assert current is not None
    read = ConsumerMember("m").with_member_value(read_consumer_value(MemberValue, told))
    assert read.with_current_value(read_consumer_value(CurrentValue, current)) == member


@pytest.mark.parametrize("kind", ConsumerRecordType)
def test_keys_are_read_and_tombstones_have_no_value(kind: ConsumerRecordType) -> None:
    keys: dict[ConsumerRecordType, Key] = {
        ConsumerRecordType.MEMBER: MemberKey(group="g", member="m"),
        ConsumerRecordType.MEMBER_TARGET: MemberKey(group="g", member="m"),
        ConsumerRecordType.CURRENT: MemberKey(group="g", member="m"),
        ConsumerRecordType.REGULAR_EXPRESSION: RegularExpressionKey(group="g", regular_expression="x"),
    }
    key = keys.get(kind, GroupKey(group="g"))
    data, value = consumer_record(kind, key, None)
    assert value is None
    assert read_consumer_key(data) == (kind, key)


@pytest.mark.parametrize("number", [0, 1, 2, 9, 15, 17, 1000])
def test_keys_of_other_groups_are_left_alone(number: int) -> None:
    assert read_consumer_key(number.to_bytes(2, "big") + b"\x00\x01g") is None


@given(st.binary(max_size=64))
def test_whatever_the_bytes_only_malformed_is_raised(data: bytes) -> None:
    for cls in VALUES.values():
        assert type(_or_malformed(partial(read_consumer_value, cls, data))) in (cls, MalformedMessage)
    assert type(_or_malformed(partial(read_consumer_key, data))) in (type(None), tuple, MalformedMessage)


def _or_malformed(read: Callable[[], Any]) -> Any:
    """The result, or the refusal."""
    try:
        return read()
    except MalformedMessage as error:
        return error


def test_values_begin_as_their_classes_say() -> None:
    empty: Owned = {}
    assert ConsumerMember("m").assigned == empty
    assert (GroupValue().epoch, TargetValue().assignment_epoch, list(MemberTargetValue().topic_partitions)) == (0, 0, [])
