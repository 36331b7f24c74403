"""The work of `group reset-offsets`: choosing partitions, finding the offsets, committing them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from barnabas.cli.connection import Connection, fail, is_error
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.offsets import (
    Partition,
    Position,
    PositionKind,
    list_offsets,
    parse_scope,
    resolve_positions,
)
from barnabas.cli.properties import read_text
from barnabas.digits import INT64, is_number
from barnabas.error_codes import ErrorCode, code_name

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

GROUP_COORDINATOR = 0  # key type of a group coordinator in FindCoordinator


class SpecKind(Enum):
    POSITION = "position"
    CURRENT = "current"
    SHIFT = "shift"
    FILE = "file"


EARLIEST = Position(PositionKind.EARLIEST)


class Spec(Struct, frozen=True):
    """The target of a reset; the kind says which field applies."""

    kind: SpecKind
    position: Position = EARLIEST
    shift: int = 0
    offsets: tuple[tuple[Partition, int], ...] = ()


def parse_spec(options: dict[str, Any]) -> Spec:
    """The one target that the options give.

    Raises:
        UsageError: the options give no target or several.
        BadInput: a file that does not parse.
    """
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    if len(given) != 1:
        names = ", ".join("--" + name.replace("_", "-") for name in (given or options))
        raise click.UsageError(f"give {'only one' if given else 'one'} of {names}")
    ((name, value),) = given.items()
    match name:
        case "to_earliest":
            return Spec(SpecKind.POSITION, Position(PositionKind.EARLIEST))
        case "to_latest":
            return Spec(SpecKind.POSITION, Position(PositionKind.LATEST))
        case "to_offset":
            return Spec(SpecKind.POSITION, Position(PositionKind.OFFSET, value))
        case "to_datetime" | "by_duration":
            return Spec(SpecKind.POSITION, Position(PositionKind.TIMESTAMP, value))
        case "shift_by":
            return Spec(SpecKind.SHIFT, shift=value)
        case "to_current":
            return Spec(SpecKind.CURRENT)
        case _:
            return Spec(SpecKind.FILE, offsets=tuple(read_offsets_file(value).items()))


def read_offsets_file(path: str) -> dict[Partition, int]:
    """The lines topic,partition,offset of a file; raises BadInput."""
    result = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if line.strip():
            parts = [part.strip().strip('"') for part in line.split(",")]
            if len(parts) != 3 or not parts[0] or not (is_number(parts[1]) and is_number(parts[2], INT64)):
                raise BadInput(f"{path}, line {number}: {line!r} is not topic,partition,offset")
            result[parts[0], int(parts[1])] = int(parts[2])
    return result


def select_partitions(
    admin: AdminClient,
    spec: Spec,
    topics: tuple[str, ...],
    all_topics: bool,
    committed: dict[Partition, int],
    timeout_s: float,
) -> list[Partition]:
    """The partitions to move; raises UsageError and BadInput for a wrong scope, Failure for topics and partitions that do not
    exist."""
    from barnabas.cli.consume import find_partitions

    if spec.kind is SpecKind.FILE and not topics:
        return [where for where, _ in spec.offsets]
    if bool(topics) == all_topics:
        raise click.UsageError("give --topic or --all-topics")
    if all_topics:
        names = sorted({topic for topic, _ in committed})
        if not names:
            raise Failure("the group has no offsets; name the topics with --topic")
        return [where for where in find_partitions(admin, tuple(names), (), timeout_s) if where in committed]
    result: list[Partition] = []
    for name, numbers in map(parse_scope, topics):
        result += find_partitions(admin, (name,), tuple(numbers), timeout_s)
    return list(dict.fromkeys(result))


def resolve_targets(
    admin: AdminClient, spec: Spec, partitions: list[Partition], committed: dict[Partition, int], timeout_s: float
) -> dict[Partition, int]:
    """The new offset of each partition, clamped to its range; partitions without one are left out."""
    if spec.kind is SpecKind.POSITION:
        return resolve_positions(admin, partitions, spec.position, timeout_s)
    if spec.kind is SpecKind.FILE:
        wanted = {where: offset for where, offset in spec.offsets if where in partitions}
    else:
        wanted = {where: committed[where] + spec.shift for where in partitions if where in committed}
    starts = list_offsets(admin, wanted, "earliest", timeout_s)
    ends = list_offsets(admin, wanted, "latest", timeout_s)
    return {where: min(max(offset, starts[where]), ends[where]) for where, offset in wanted.items()}


def commit_offsets(admin: AdminClient, name: str, offsets: dict[Partition, int], timeout_s: float) -> None:
    """Commit the offsets of the group; raises Failure, for instance while the group has members."""
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

    if not offsets:
        return
    request = ConsumerGroupTopicPartitions(name, [TopicPartition(*where, offset) for where, offset in offsets.items()])
    try:
        futures = admin.alter_consumer_group_offsets([request], request_timeout=timeout_s)
        result = futures[name].result(timeout_s + 1)
        for answer in result.topic_partitions or []:
            if answer.error is not None:
                raise KafkaException(answer.error)
    except KafkaException as error:
        if is_error(error, ErrorCode.UNKNOWN_MEMBER_ID):
            raise Failure(f"group {name} has active members; stop them first (UNKNOWN_MEMBER_ID)") from error
        fail(f"group {name}", error)


def delete_offsets(connection: Connection, name: str, partitions: Iterable[Partition]) -> dict[Partition, str]:
    """Delete offsets of the group; returns each partition that was refused, with the reason. Raises Failure if all are
    refused."""
    from barnabas.protocol.messages.offset_delete import (
        OffsetDeleteRequest,
        OffsetDeleteRequestPartition,
        OffsetDeleteRequestTopic,
    )
    from barnabas.protocol.partitions import by_topic

    request = OffsetDeleteRequest(
        group_id=name,
        topics=[
            OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=n) for n in numbers])
            for topic, numbers in by_topic(partitions).items()
        ],
    )
    host, port = _find_coordinator(connection, name)
    with connection.wire() as wire, wire.to(host, port) as coordinator:
        answer = coordinator.request(request)
    if answer.error_code:
        raise Failure(f"group {name}: {code_name(answer.error_code)}")
    return {(t.name, p.partition_index): code_name(p.error_code) for t in answer.topics for p in t.partitions if p.error_code}


def _find_coordinator(connection: Connection, name: str) -> tuple[str, int]:
    from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest

    with connection.wire() as wire:
        answer = wire.request(FindCoordinatorRequest(key=name, key_type=GROUP_COORDINATOR, coordinator_keys=[name]))
    # From version 4 on, the response contains a list with one entry per key. Before, the response itself is the entry.
    found = answer.coordinators[0] if answer.coordinators else answer
    if found.error_code:
        raise Failure(f"group {name}: {code_name(found.error_code)}")
    return found.host, found.port
