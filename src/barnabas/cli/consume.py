"""`barnabas consume`: print the records of topics.

Rules
  1. Without --follow it ends at the end offsets that the partitions had when it began, so it also ends while
     producers write. By default it reads committed records, as isolation.level says: it prints no record after an open
     transaction before that transaction has ended.
  2. Without --group nothing is committed and no group is joined. With --group the offset of a record is committed after the
     record was printed and flushed. The committed offset is the consumer's position. This is also after markers and aborted
     records, so no lag remains at the end.
  3. Ctrl-C is the normal end of --follow: exit code 0, and the printed records are committed.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import Connection, connection_options, fail
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.fatal import with_exceptions
from barnabas.cli.offsets import POSITION, Partition, Position, PositionKind, resolve_positions
from barnabas.cli.records import OUTPUT_FORMAT, Printer, printer_for, unescape
from barnabas.cli.registry_connection import RegistryOptions, registry_options
from barnabas.cli.schema_records import Decoding, decoding_options
from barnabas.cli.types import ANY_TEXT, COUNT, PARTITION, UNPADDED
from barnabas.signals import interrupted_by_sigterm

if TYPE_CHECKING:
    from confluent_kafka import Consumer

Ends = dict[Partition, int]  # partitions that the consumer has read to the end, with the end offset
# by type, the getters of confluent_kafka.Message may return None, but they never do for a received record
Messages = list[Any]

BATCH = 1_000
END_WAIT_MS = 50  # an empty fetch response shows the end of a partition; the broker delays this response by this time
WAIT_S = 0.25  # between two checks for Ctrl-C while no records arrive
LOOK_AGAIN_S = 10.0  # between two checks for added partitions
LOOKUP_S = 1.0  # the longest delay of the output by such a check
CONFIG = {
    "enable.partition.eof": True,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
    # If its queue is full, librdkafka waits 1 s by default before it fetches again. Printing empties the queue sooner.
    "fetch.queue.backoff.ms": 10,
}


class ByPartition:
    """Reads partitions from given offsets; finished when each has reached its end.

    Args:
        grows: also read partitions that are added to the topics later, from their beginning.
    """

    def __init__(
        self, consumer: Consumer, starts: dict[Partition, int], ends: dict[Partition, int] | None, *, grows: bool = False
    ) -> None:
        from confluent_kafka import TopicPartition

        self.consumer = consumer
        self.ends = ends  # None if reading continues without an end
        self.grows = grows
        self.look_again_at = time.monotonic() + LOOK_AGAIN_S
        self.open = {where for where in starts if ends is None or starts[where] < ends[where]}
        consumer.assign([TopicPartition(*where, starts[where]) for where in self.open])

    def is_finished(self) -> bool:
        return not self.open

    def receive_end(self, where: Partition) -> None:
        if self.ends is not None:
            self.open.discard(where)

    def accept(self, messages: Messages) -> Messages:
        """The records before the ends."""
        if self.ends is None:
            return messages
        wanted = []
        for message in messages:
            where, offset = (message.topic(), message.partition()), message.offset()
            if offset < self.ends[where]:
                wanted.append(message)
            if offset + 1 >= self.ends[where]:
                self.open.discard(where)
        return wanted

    def receive_printed(self, messages: Messages, ends: Ends) -> None:
        """Commits nothing."""

    def look_for_more(self) -> None:
        """Assign added partitions, if the next check for them is due."""
        from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

        if not self.grows or time.monotonic() < self.look_again_at:
            return
        found: set[Partition] = set()
        for topic in {topic for topic, _ in self.open}:
            try:
                described = self.consumer.list_topics(topic, LOOKUP_S).topics[topic]
            except KafkaException:
                break  # no broker answered, and each further topic would wait as long; the consumer reports errors itself
            found |= {(topic, number) for number in described.partitions}
        added = sorted(found - self.open)
        self.consumer.incremental_assign([TopicPartition(*where, OFFSET_BEGINNING) for where in added])
        self.open |= set(added)
        self.look_again_at = time.monotonic() + LOOK_AGAIN_S


class ByGroup:
    """Reads the partitions that the group assigns to this member; finished at the end of all of them."""

    def __init__(self, consumer: Consumer, topics: list[str], *, follow: bool, commit: bool) -> None:
        self.consumer = consumer
        self.follow = follow
        self.commit = commit
        self.assigned: set[Partition] | None = None
        self.at_end: set[Partition] = set()
        consumer.subscribe(topics, on_assign=self._receive_assignment, on_revoke=self._receive_revocation)

    def _receive_assignment(self, consumer: Consumer, partitions: list[Any]) -> None:
        self.assigned = (self.assigned or set()) | {(p.topic, p.partition) for p in partitions}

    def _receive_revocation(self, consumer: Consumer, partitions: list[Any]) -> None:
        gone = {(p.topic, p.partition) for p in partitions}
        # None without partitions: then the consumer waits for the next assignment
        self.assigned = (self.assigned or set()) - gone or None
        self.at_end -= gone

    def look_for_more(self) -> None:
        """The group assigns added partitions itself."""

    def is_finished(self) -> bool:
        return not self.follow and self.assigned is not None and self.assigned <= self.at_end

    def receive_end(self, where: Partition) -> None:
        self.at_end.add(where)

    def accept(self, messages: Messages) -> Messages:
        self.at_end -= {(message.topic(), message.partition()) for message in messages}
        return messages

    def receive_printed(self, messages: Messages, ends: Ends) -> None:
        from confluent_kafka import TopicPartition

        if not self.commit:
            return
        # A partition that was revoked in the meantime belongs to another member, which reads and commits it again.
        ours = {*ends, *((message.topic(), message.partition()) for message in messages)} & (self.assigned or set())
        positions = self.consumer.position([TopicPartition(*where) for where in ours])
        reached = [(each, max(each.offset, ends.get((each.topic, each.partition), -1))) for each in positions]
        self.consumer.store_offsets(offsets=[TopicPartition(p.topic, p.partition, at) for p, at in reached if at >= 0])


@click.command()
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "--from",
    "start",
    type=POSITION,
    default="earliest",
    show_default=True,
    metavar="POSITION",
    help="The position to begin at: earliest, latest, an offset, -10 (ten before the end), -5m (five minutes ago), @milliseconds, a date.",
)
@click.option(
    "--to",
    "end",
    type=POSITION,
    metavar="POSITION",
    help="The position to end at.  [default: the end offsets at the start of the command]",
)
@click.option("-F", "--follow", is_flag=True, help="Keep waiting for more records. Partitions that are added to the topic are read within "
    "ten seconds, except with --partition or --group.")  # fmt: skip
@click.option("-n", "--max-messages", type=COUNT, metavar="N", help="End after N records.")
@click.option("-p", "--partition", "partitions", type=PARTITION, multiple=True, help="Only this partition; repeatable.")
@click.option(
    "-g", "--group", type=UNPADDED, metavar="GROUP", help="Read as a member of a consumer group and commit what was printed."
)
@click.option("--no-commit", is_flag=True, help="With --group: leave its offsets alone.")
@click.option(
    "-f",
    "--format",
    "format_name",
    type=OUTPUT_FORMAT,
    default="text",
    show_default=True,
    metavar="text|json|hex|TEMPLATE",
    help="How to print; a template has %k %v %h %t %p %o %T %K %S, for example '%p:%o %k=%v\\n'.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("-K", "--key-separator", type=ANY_TEXT, metavar="TEXT", help="Print key, TEXT, value.")
@click.option(
    "--null", "null_marker", type=ANY_TEXT, metavar="TEXT", help="Print TEXT for a null key or value.  [default: nothing]"
)
@decoding_options
@registry_options
@connection_options
def consume(
    connection: Connection,
    topics: tuple[str, ...],
    start: Position,
    end: Position | None,
    follow: bool,
    max_messages: int | None,
    partitions: tuple[int, ...],
    group: str | None,
    no_commit: bool,
    format_name: str,
    as_json: bool,
    key_separator: str | None,
    null_marker: str | None,
    decoded_parts: set[str],
    registry: RegistryOptions,
) -> None:
    """Print the records of TOPICs, from the beginning to the end that they have now.

    \b
    barnabas consume flights --follow --from latest
    barnabas consume flights --from -5m --format '%T %k %v\\n'
    barnabas consume flights --group dashboards --json
    barnabas consume orders --schema

    Ctrl-C and SIGTERM end it in order; a member leaves its group.
    """
    separator = unescape(key_separator) if key_separator else None
    null = null_marker.encode() if null_marker is not None else None
    format_name = "json" if as_json else format_name
    printer = printer_for(format_name, key_separator=separator, null_marker=null)
    if follow and end:
        raise click.UsageError("--follow and --to exclude each other")
    decoding = Decoding(registry, decoded_parts) if decoded_parts else None
    if decoding is not None:
        printer = decoding.printer(printer, as_json=format_name == "json")
    consumer: Consumer
    reader: ByPartition | ByGroup
    if group:
        if partitions or end:
            raise click.UsageError("a group reads all partitions to their end; --group excludes --partition and --to")
        consumer, reader = open_group(connection, topics, group, start, follow=follow, commit=not no_commit)
    else:
        consumer, reader = open_partitions(connection, topics, partitions, start, end, follow=follow)
    try:
        with interrupted_by_sigterm():
            _print_all(consumer, reader, printer, max_messages, connection.timeout_s, follow=follow)
    except KeyboardInterrupt:
        pass  # Ctrl-C is the usual end of --follow
    finally:
        consumer.close()
        if decoding is not None:
            decoding.client.close()
    if decoding is not None and decoding.failed:
        raise Failure(f"{decoding.failed} records could not be decoded")


def open_group(
    connection: Connection, topics: tuple[str, ...], group: str, begin: Position, *, follow: bool, commit: bool
) -> tuple[Consumer, ByGroup]:
    if begin.kind not in {PositionKind.EARLIEST, PositionKind.LATEST}:
        raise BadInput(
            "a group continues at its committed offsets; with --group, --from takes only earliest or "
            "latest, for partitions without one (see group reset-offsets)"
        )
    settings: dict[str, Any] = {**CONFIG, "auto.offset.reset": begin.kind.value}
    if not follow:
        settings["fetch.wait.max.ms"] = END_WAIT_MS
    named = connection.properties.get("group.id", group)
    if named != group:
        raise BadInput(f"--group {group} and the setting group.id={named} are two groups")
    asked = {"group.id": group, "enable.auto.commit": commit, "enable.auto.offset.store": False}
    consumer = connection.consumer(settings, asked)
    return consumer, ByGroup(consumer, list(topics), follow=follow, commit=commit)


def open_partitions(
    connection: Connection,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    begin: Position,
    stop: Position | None,
    *,
    follow: bool,
) -> tuple[Consumer, ByPartition]:
    admin = connection.admin()
    wanted = find_partitions(admin, topics, partitions, connection.timeout_s)
    stable = connection.properties.get("isolation.level") != "read_uncommitted"  # read_committed is librdkafka's default
    starts = resolve_positions(admin, wanted, begin, connection.timeout_s, stable=stable)
    ends = (
        None if follow else resolve_positions(admin, wanted, Position(PositionKind.LATEST), connection.timeout_s, stable=stable)
    )
    if ends is not None and stop is not None:
        asked = resolve_positions(admin, wanted, stop, connection.timeout_s, stable=stable)
        ends = {where: min(end, asked[where]) for where, end in ends.items()}
    # librdkafka requires a group id. It has no effect here: partitions are assigned directly and no offset is stored.
    consumer = connection.consumer({**CONFIG, "group.id": "barnabas-cli", "enable.auto.commit": False})
    return consumer, ByPartition(consumer, starts, ends, grows=follow and not partitions)


def find_partitions(admin: Any, topics: tuple[str, ...], only: tuple[int, ...], timeout_s: float) -> list[Partition]:
    """The partitions of the topics: all of them, or those with the numbers `only`. Raises Failure for missing topics and
    partitions."""
    from barnabas.cli.topic import describe_topics

    found = []
    for name, described in describe_topics(admin, timeout_s, topics).items():
        if "error" in described:
            raise Failure(f"topic {name}: {described['error']}")
        numbers = {p["partition"] for p in described["partitions"]}
        if missing := set(only) - numbers:
            raise Failure(f"topic {name} has partitions 0 to {len(numbers) - 1}, not {min(missing)}")
        found += [(name, number) for number in sorted(set(only) or numbers)]
    return found


def _print_all(
    consumer: Consumer,
    reader: ByPartition | ByGroup,
    printer: Printer,
    max_messages: int | None,
    timeout_s: float,
    *,
    follow: bool,
) -> None:
    left = max_messages if max_messages is not None else sys.maxsize
    out = sys.stdout.buffer
    heard_at = time.monotonic()
    while left and not reader.is_finished():
        messages, ends = _poll(consumer, min(BATCH, left), in_group=isinstance(reader, ByGroup))
        if messages or ends:
            heard_at = time.monotonic()
        elif not follow and time.monotonic() - heard_at > timeout_s:
            raise Failure(f"no record came for {timeout_s:g} s (--timeout)")
        wanted = reader.accept(messages)
        for where in ends:
            reader.receive_end(where)
        if wanted:
            out.write(b"".join(map(printer, wanted)))
            out.flush()
            left -= len(wanted)
        if wanted or ends:
            reader.receive_printed(wanted, ends)
        reader.look_for_more()


def _poll(consumer: Consumer, most: int, *, in_group: bool) -> tuple[Messages, Ends]:
    """Records, and the partitions that have reached their end. Waits for the first record only, so that records of a slow
    topic are printed as they arrive.

    Args:
        in_group: whether the command uses a group. Otherwise it ignores an authorization error about the group id, since
            librdkafka requires an id.
    """
    from confluent_kafka import KafkaError, KafkaException

    first = with_exceptions(consumer.poll, WAIT_S)
    if first is None:
        return [], {}
    messages: Messages = []
    ends: dict[Any, Any] = {}
    for message in [first, *(with_exceptions(consumer.consume, most - 1, 0) if most > 1 else [])]:
        error = message.error()
        if error is None:
            messages.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            ends[message.topic(), message.partition()] = message.offset()
        elif not error.retriable() and (in_group or error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED):
            fail(f"topic {message.topic()}" if message.topic() else "cannot read", KafkaException(error))
    return messages, ends
