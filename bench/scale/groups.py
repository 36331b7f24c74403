"""The memory of group coordinators, and the cost of moving them to another broker: the real core replays its records."""

from __future__ import annotations

import time
from typing import Any

from barnabas.config.broker import BrokerConfig
from barnabas.coordination.classic.group import ClassicGroup
from barnabas.coordination.group_records import (
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitValue,
    group_record,
    offset_record,
)
from barnabas.coordination.group_shard import GroupShard
from barnabas.coordination.result import Now
from barnabas.coordination.version_prefix import Record
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.testing.no_topics import NoTopics
from bench.scale.memory import resident_bytes

GROUPS, MEMBERS, OFFSETS = 2_000, 5, 50  # groups, members per group, committed partitions per group
NOW = Now(1_700_000_000_000, 0)
HEARTBEATS = 100_000


def measure_groups() -> dict[str, Any]:
    """The bytes in the log and in memory, and the seconds of loading and of a heartbeat."""
    records = [record for number in range(GROUPS) for record in _records_of(f"group-{number:05d}")]
    config, _ = BrokerConfig.from_properties({"log.dirs": "/nowhere"})
    shard = GroupShard(config, NOW, NoTopics())
    before, began = resident_bytes(), time.process_time()
    for record in records:
        shard.replay(record)
    shard.receive_loaded(NOW)
    loaded_s = time.process_time() - began
    assert len(shard) == GROUPS
    kept = resident_bytes() - before
    group = shard.groups["group-00000"]
    assert isinstance(group, ClassicGroup)
    request = HeartbeatRequest(group_id="group-00000", generation_id=1, member_id="member-0")
    began = time.process_time()
    for _ in range(HEARTBEATS):
        answer = shard.heartbeat(request, NOW)
    heartbeat_s = (time.process_time() - began) / HEARTBEATS
    assert answer.error_code == 0
    return {
        "groups": GROUPS,
        "members": MEMBERS,
        "offsets": OFFSETS,
        "log_bytes": sum(len(key) + len(value or b"") for key, value in records),
        "resident_bytes": kept,
        "load_s": loaded_s,
        "heartbeat_s": heartbeat_s,
    }


def _records_of(group: str) -> list[Record]:
    members = [
        MemberMetadata(
            member_id=f"member-{number}",
            client_id="a-consumer",
            client_host="/10.0.0.1",
            rebalance_timeout_ms=300_000,
            session_timeout_ms=45_000,
            subscription=bytes(40),
            assignment=bytes(20 + 4 * OFFSETS // MEMBERS),
        )
        for number in range(MEMBERS)
    ]
    generation = GroupMetadataValue(protocol_type="consumer", generation=1, protocol="range", leader="member-0", members=members)
    commits = [
        offset_record(
            group, f"topic-{number // 10:03d}", number % 10, OffsetCommitValue(offset=1_000_000, commit_timestamp_ms=NOW.wall_ms)
        )
        for number in range(OFFSETS)
    ]
    return [group_record(group, generation), *commits]
