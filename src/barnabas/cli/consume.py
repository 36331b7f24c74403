"""`barnabas consume`: print the records of topics.

Rules
  1. Without --follow it ends where the partitions ended when it began, so it ends also while others write. The end is that of
      committed records unless the settings ask for others: no record behind an open transaction comes before that has ended.
  2. Without --group nothing is committed and no group is joined. With --group a record counts as read once it was printed and
      flushed. What is committed are positions: they stand behind markers and aborted records, so that no lag is left at the end.
  3. Ctrl-C is the normal end of --follow: exit code 0, and what was printed is committed.
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
from barnabas.cli.types import ANY_TEXT, COUNT, PARTITION, UNPADDED
from barnabas.signals import interrupted_by_sigterm

if TYPE_CHECKING:
    from confluent_kafka import Consumer

Ends = dict[Partition, int]  # partitions whose end was reached, and where that is
Messages = list[Any]  # of confluent_kafka.Message, whose every getter may be None by its types; records that came have all

BATCH = 1_000
END_WAIT_MS = 50  # the end of a partition shows in an empty answer, which a broker holds back this long
WAIT_S = 0.25  # between two looks for Ctrl-C while nothing arrives
LOOK_AGAIN_S = 10.0  # between two looks for partitions that were added
LOOKUP_S = 1.0  # such a look may hold up the printing
CONFIG = {
    "enable.partition.eof": True,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
    # librdkafka waits a whole second before it looks again at a queue that was full; printing empties it sooner.
    "fetch.queue.backoff.ms": 10,
}


class ByPartition:
    """Reads partitions from given offsets; finished when each has come to its end.

    Args:
        grows: partitions that are added to the topics are read as well, from their beginning.
    """

    def __init__(
        self, consumer: Consumer, starts: dict[Partition, int], ends: dict[Partition, int] | None, *, grows: bool = False
    ) -> None:
        from confluent_kafka import TopicPartition

        self.consumer = consumer
        self.ends = ends  # None: never
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
        """Those before the ends."""
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
        """Nothing is remembered."""

    def look_for_more(self) -> None:
        """Take up partitions that were added since, if it is time to look."""
        from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

        if not self.grows or time.monotonic() < self.look_again_at:
            return
        found: set[Partition] = set()
        for topic in {topic for topic, _ in self.open}:
            try:
                described = self.consumer.list_topics(topic, LOOKUP_S).topics[topic]
            except KafkaException:
                break  # no broker answered, and every other topic would wait as long; reading goes on, and says what it cannot
            found |= {(topic, number) for number in described.partitions}
        added = sorted(found - self.open)
        self.consumer.incremental_assign([TopicPartition(*where, OFFSET_BEGINNING) for where in added])
        self.open |= set(added)
        self.look_again_at = time.monotonic() + LOOK_AGAIN_S


class ByGroup:
    """Reads what the group gives to this member; finished when it is at the end of all of that."""

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
        self.assigned = (self.assigned or set()) - gone or None  # with nothing left it waits for what the group gives it next
        self.at_end -= gone

    def look_for_more(self) -> None:
        """The group does."""

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
        # What was taken away meanwhile is for its owner to commit, who reads it again.
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
    help="Where to begin: earliest, latest, an offset, -10 (ten before the end), -5m (ago), @milliseconds, a date.",
)
@click.option("--to", "end", type=POSITION, metavar="POSITION", help="Where to end.  [default: where the topic ends now]")
@click.option("-F", "--follow", is_flag=True, help="Wait for more records, without end; those of partitions that are "
              "added come within ten seconds, unless --partition or --group shares them out.")  # fmt: skip
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
) -> None:
    """Print the records of TOPICs, from the beginning to the end that they have now.

    \b
    barnabas consume flights --follow --from latest
    barnabas consume flights --from -5m --format '%T %k %v\\n'
    barnabas consume flights --group dashboards --json

    Ctrl-C and SIGTERM end it in order; a member leaves its group.
    """
    separator = unescape(key_separator) if key_separator else None
    null = null_marker.encode() if null_marker is not None else None
    printer = printer_for("json" if as_json else format_name, key_separator=separator, null_marker=null)
    if follow and end:
        raise click.UsageError("--follow has no end; leave --to out")
    consumer: Consumer
    reader: ByPartition | ByGroup
    if group:
        if partitions or end:
            raise click.UsageError("a group shares out all partitions to their end; leave --partition and --to out")
        consumer, reader = open_group(connection, topics, group, start, follow=follow, commit=not no_commit)
    else:
        consumer, reader = open_partitions(connection, topics, partitions, start, end, follow=follow)
    try:
        with interrupted_by_sigterm():
            _print_all(consumer, reader, printer, max_messages, connection.timeout_s, follow=follow)
    except KeyboardInterrupt:
        pass  # the way to end --follow
    finally:
        consumer.close()


def open_group(
    connection: Connection, topics: tuple[str, ...], group: str, begin: Position, *, follow: bool, commit: bool
) -> tuple[Consumer, ByGroup]:
    if begin.kind not in {PositionKind.EARLIEST, PositionKind.LATEST}:
        raise BadInput(
            "a group begins where it stopped; only --from earliest or latest is for its first time (see group reset-offsets)"
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
    stable = connection.properties.get("isolation.level") != "read_uncommitted"  # librdkafka's default
    starts = resolve_positions(admin, wanted, begin, connection.timeout_s, stable=stable)
    ends = (
        None if follow else resolve_positions(admin, wanted, Position(PositionKind.LATEST), connection.timeout_s, stable=stable)
    )
    if ends is not None and stop is not None:
        asked = resolve_positions(admin, wanted, stop, connection.timeout_s, stable=stable)
        ends = {where: min(end, asked[where]) for where, end in ends.items()}
    # librdkafka wants a group's name; it is used for nothing, because partitions are assigned and nothing is stored.
    consumer = connection.consumer({**CONFIG, "group.id": "barnabas-cli", "enable.auto.commit": False})
    return consumer, ByPartition(consumer, starts, ends, grows=follow and not partitions)


def find_partitions(admin: Any, topics: tuple[str, ...], only: tuple[int, ...], timeout_s: float) -> list[Partition]:
    """The partitions of the topics, all or those numbered `only`; raises Failure for topics and partitions that are not there."""
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
            raise Failure(f"nothing came for {timeout_s:g} s (--timeout)")
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
    """Records, and the partitions whose end was reached. Waits for the first only: a slow topic is printed as it comes.

    Args:
        in_group: else it is nothing to us that we may not use the group which librdkafka wants a name of.
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
