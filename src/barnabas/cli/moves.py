"""Moves of replicas, for the commands that move them: reads the cluster, shows the plan, starts the moves and watches them.

Works with any Kafka cluster; sends requests that librdkafka does not offer over its own connection.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from barnabas.cli import throttle
from barnabas.cli.connection import Connection, fail
from barnabas.cli.errors import Failure
from barnabas.cli.output import Output
from barnabas.cli.types import COUNT
from barnabas.cluster.planning.moves import Partition, Replicas, changes
from barnabas.error_codes import ErrorCode, code_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.cli.wire import Wire

COLUMNS = {"topic": "TOPIC", "partition": "PARTITION", "before": "FROM", "after": "TO", "bytes": "BYTES"}
AT_ONCE = 1_000  # moves in one request
POLL_S = 0.2


class Manner(Struct, frozen=True):
    """Options of a move.

    Fields:
        only_plan: show the moves and do not start them.
        no_wait: start the moves and do not wait for their end.
        throttle: the limit in bytes per second for the moves, for the sent and for the received bytes of each broker; None for
            no limit.
    """

    only_plan: bool
    no_wait: bool
    throttle: int | None


class Layout(Struct):
    """The brokers, and the replicas of every partition."""

    assignment: dict[Partition, Replicas]
    racks: dict[int, str | None]
    sizes: dict[Partition, int]


def move_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that all commands that move replicas share."""

    @functools.wraps(function)
    def with_manner(only_plan: bool, no_wait: bool, throttle: int | None, **options: Any) -> Any:
        return function(manner=Manner(only_plan, no_wait, throttle), **options)

    with_manner = click.option("--no-wait", is_flag=True, help="Start the moves and do not wait for their end.")(with_manner)
    with_manner = click.option(
        "--throttle",
        type=COUNT,
        metavar="BYTES/S",
        help="Bytes a second that a broker may send and receive for the moves. The limit ends with the "
        "moves; after --no-wait, `topic reassign --watch` removes it.",
    )(with_manner)
    return click.option(
        "--plan", "only_plan", is_flag=True, help="Only show what would move; with --json in the format of Kafka's tool."
    )(with_manner)


def read_layout(connection: Connection, wire: Wire) -> Layout:
    from confluent_kafka import KafkaException

    admin = connection.admin()
    try:
        nodes = admin.describe_cluster(request_timeout=connection.timeout_s).result(connection.timeout_s + 1).nodes
        metadata = admin.list_topics(timeout=connection.timeout_s)
    except KafkaException as error:
        fail("cannot describe the cluster", error)
    assignment = {
        (name, number): tuple(partition.replicas)
        for name, topic in metadata.topics.items()
        for number, partition in topic.partitions.items()
    }
    return Layout(
        assignment, {node.id: node.rack for node in nodes}, _sizes(wire, {node.id: (node.host, node.port) for node in nodes})
    )


def _sizes(wire: Wire, nodes: Mapping[int, tuple[str, int]]) -> dict[Partition, int]:
    """Bytes of each partition's largest replica."""
    from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest

    sizes: dict[Partition, int] = {}
    for host, port in nodes.values():
        with wire.to(host, port) as one:
            answer = one.request(DescribeLogDirsRequest(topics=None))
        for directory in answer.results:
            for topic in directory.topics:
                for found in topic.partitions:
                    key = topic.name, found.partition_index
                    sizes[key] = max(sizes.get(key, 0), found.partition_size)
    return sizes


def carry_out(wire: Wire, output: Output, layout: Layout, wanted: Mapping[Partition, Replicas], manner: Manner) -> None:
    """Show the plan, or start the moves and wait for their end."""
    before = {partition: layout.assignment[partition] for partition in wanted}
    plan = changes(before, dict(wanted))
    if manner.only_plan:
        _show(output, layout, plan)
        return
    if not plan:
        output.done("nothing to move", {"moved": 0})
        return
    try:
        if manner.throttle is not None:
            throttle.begin(wire, before, plan, manner.throttle, alive=layout.racks)
        alter(wire, plan)
    except Failure:
        end_throttle(wire, {topic for topic, _ in plan})
        raise
    if manner.no_wait:
        output.done(f"started to move {len(plan)} partitions", {"begun": len(plan)})
        return
    watch(wire, plan)
    if manner.throttle is not None:
        end_throttle(wire, {topic for topic, _ in plan})
    _elect_preferred(wire, plan)
    output.done(f"moved {len(plan)} partitions", {"moved": len(plan)})


def _show(output: Output, layout: Layout, plan: Mapping[Partition, Replicas]) -> None:
    if output.as_json:
        partitions = [{"topic": t, "partition": p, "replicas": list(replicas)} for (t, p), replicas in sorted(plan.items())]
        output.json({"version": 1, "partitions": partitions})
        return
    rows = []
    for (topic, number), replicas in sorted(plan.items()):
        old = layout.assignment[topic, number]
        copied = layout.sizes.get((topic, number), 0) * len(set(replicas) - set(old))
        rows.append({"topic": topic, "partition": number, "before": list(old), "after": list(replicas), "bytes": copied})
    output.table(rows, COLUMNS, empty="nothing to move")


def alter(wire: Wire, plan: Mapping[Partition, Replicas | None]) -> None:
    """Start moves; None cancels the move of a partition, and it is no error if that has ended. Raises Failure for the first
    refusal."""
    from barnabas.protocol.messages import alter_partition_reassignments as messages

    items = list(plan.items())
    for start in range(0, len(items), AT_ONCE):
        topics: dict[str, list[messages.ReassignablePartition]] = {}
        for (topic, number), replicas in items[start : start + AT_ONCE]:
            entry = messages.ReassignablePartition(partition_index=number, replicas=None if replicas is None else list(replicas))
            topics.setdefault(topic, []).append(entry)
        request = messages.AlterPartitionReassignmentsRequest(
            timeout_ms=30_000, topics=[messages.ReassignableTopic(name=name, partitions=parts) for name, parts in topics.items()]
        )
        answer = wire.request(request)
        _check("the request", answer.error_code, answer.error_message)
        for topic_answer in answer.responses:
            for result in topic_answer.partitions:
                place = topic_answer.name, result.partition_index
                if plan[place] is not None or result.error_code != ErrorCode.NO_REASSIGNMENT_IN_PROGRESS:
                    _check(f"{place[0]}-{place[1]}", result.error_code, result.error_message)


def ongoing(wire: Wire) -> dict[Partition, tuple[Replicas, Replicas, Replicas]]:
    """For each partition that is being moved: its replicas, those being added and those being removed."""
    from barnabas.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

    answer = wire.request(ListPartitionReassignmentsRequest(timeout_ms=30_000, topics=None))
    _check("the list of moves", answer.error_code, answer.error_message)
    return {
        (topic.name, p.partition_index): (tuple(p.replicas), tuple(p.adding_replicas), tuple(p.removing_replicas))
        for topic in answer.topics
        for p in topic.partitions
    }


def watch(wire: Wire, partitions: Iterable[Partition]) -> None:
    """Wait until the moves of all these partitions have ended."""
    waiting = set(partitions)
    total = len(waiting)
    with _progress(total) as show:
        while True:
            waiting &= ongoing(wire).keys()
            show(total - len(waiting))
            if not waiting:
                return
            time.sleep(POLL_S)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("moving", total=total)
        yield lambda done: progress.update(task, completed=done)


def _elect_preferred(wire: Wire, partitions: Iterable[Partition]) -> None:
    """Elect the first replica of each partition as its leader. If a replica cannot lead yet, the controller elects it later."""
    from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    asked = [TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in topics.items()]
    wire.request(ElectLeadersRequest(election_type=0, topic_partitions=asked, timeout_ms=30_000))


def end_throttle(wire: Wire, topics: Iterable[str]) -> int:
    """Remove the throttle from the topics in `topics` without moves; returns how many of them had a throttle."""
    moving = {topic for topic, _ in ongoing(wire)}
    return throttle.end(wire, sorted(set(topics) - moving), rates_too=not moving)


def _check(what: str, code: int, message: str | None) -> None:
    if code:
        raise Failure(f"{what} is refused: {message or code_name(code)}")
