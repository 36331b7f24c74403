"""`barnabas mirror failback`: topics of an old site become copies of the site that took over, cut at the last common offset.

The brokers compare and cut (`mirror/partition_copy.py`); this module leads them from state to state, and saves the records in between. Each
step can be repeated: the command looks at the state of each topic, and goes on from there.

    (ordinary)  -> inspecting   the controller ties the topic to that of the source; the leaders find the common offsets
    inspecting  -> comparing    nobody can write any more; the common offsets are final. `mirror.lost.topic` is set
    comparing   -> truncating   after the records beyond were saved, and offsets of groups beyond were moved back
    truncating  -> mirroring    after all in-sync replicas were cut; a leader epoch begins
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from barnabas.cli.broker_connections import Brokers
from barnabas.cli.connection import Connection
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.mirror_requests import LOOK_AGAIN_S, LinkView, view
from barnabas.cli.resources import Change, Operation, alter_settings
from barnabas.client.blocking import BlockingClient, PartitionReader
from barnabas.client.cluster import Topic
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError
from barnabas.client.results import EARLIEST, LATEST, NewTopic
from barnabas.config.mirror_settings import (
    COMPARING,
    INSPECTING,
    MIRROR_LINK,
    MIRROR_LOST_TOPIC,
    MIRROR_STATE,
    MIRRORING,
    OF_LINK,
    TRUNCATING,
)
from barnabas.error_codes import code_name
from barnabas.errors import ConfigError, KafkaError
from barnabas.mirror.lost_records import LostRecord, Outcomes, batches_of, early_records, origin_of
from barnabas.mirror.status import PartitionStatus
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.records.batch import iterate_records, split_batches
from barnabas.protocol.values import ResourceType

ORDINARY = ""  # the state of a topic without a link
LONGEST_TRANSACTION_MS = 3_600_000  # four times the default of transaction.max.timeout.ms
LARGEST_MESSAGE = 1_048_588
ROOM_FOR_HEADERS = 65_536


class LostPart(Struct):
    """The records of one partition from the common offset on.

    Args:
        end: the end of the log before the cut.
        records: the number of saved records; None if they were only counted by offsets.
    """

    topic: str
    partition: int
    common: int
    end: int
    records: int | None = None
    aborted: int = 0
    saved_in: str = ""


class Failback:
    """One run of the command on the old site.

    Args:
        tell: takes a line about progress.

    Raises, from all methods:
        Failure: the cluster refuses a step, or it takes too long.
    """

    def __init__(self, connection: Connection, link: str, wait_s: float, tell: Callable[[str], None]) -> None:
        self._brokers = Brokers(connection)
        self._connection = connection
        self._link = link
        self._wait_s = wait_s
        self._tell = tell

    def __enter__(self) -> Failback:
        return self

    def __exit__(self, *_: object) -> None:
        self._brokers.__exit__(None, None, None)

    # The topics

    def require_names(self, topics: Iterable[str]) -> None:
        """Raise Failure if the link gives copies other names, and BadInput for a topic that is not there."""
        prefix = view(self._brokers, self._link).settings.get("cluster.link.prefix")
        if prefix:
            raise Failure(
                f"mirror link {self._link} has the prefix {prefix}, and a topic is failed back only under its own name: "
                "use a link without a prefix"
            )
        with _client(self._connection) as client:
            absent = sorted(set(topics) - client.topics_by_name(sorted(topics)).keys())
        if absent:
            raise BadInput(f"there is no topic {', '.join(absent)} here")

    def candidates(self) -> list[str]:
        """The topics here that the link's patterns match, for `--all`."""
        settings = view(self._brokers, self._link).settings
        wanted, excluded = (
            [re.compile(pattern) for pattern in (settings.get(key) or "").split(",") if pattern]
            for key in ("topics", "topics.exclude")
        )
        with _client(self._connection) as client:
            names = [name for name, topic in client.topics().items() if not topic.is_internal]
        return sorted(
            name
            for name in names
            if any(each.fullmatch(name) for each in wanted) and not any(each.fullmatch(name) for each in excluded)
        )

    def states(self, topics: Iterable[str]) -> dict[str, str]:
        """The state of each topic; raises Failure for a topic of another link, or in a promotion."""
        found = {}
        with _client(self._connection) as client:
            for topic in topics:
                settings = client.describe_topic_config(topic, only_own=True)
                link = settings.get(MIRROR_LINK) or ""
                if link not in {"", self._link}:
                    raise Failure(f"topic {topic} is a copy of the mirror link {link}")
                found[topic] = (settings.get(MIRROR_STATE) or MIRRORING) if link else ORDINARY
        return found

    def inspect(self, topics: Sequence[str], *, only_promoted: bool) -> list[str]:
        """Have the leaders compare topics with the source, without an effect on writers; returns the topics that were compared.

        Args:
            only_promoted: leave out topics that cannot be compared, instead of failing.
        """
        states = self.states(topics)
        for topic, state in states.items():
            if state == ORDINARY:
                self._set(topic, {MIRROR_LINK: self._link, MIRROR_STATE: INSPECTING})
        waiting = {topic for topic, state in states.items() if state in {ORDINARY, INSPECTING}}
        refused = self._wait_for("inspected", waiting) if waiting else {}
        for topic in refused:
            self.detach([topic])
        if refused and not only_promoted:
            self.detach([topic for topic in waiting if topic not in refused])
            raise Failure("; ".join(f"topic {topic}: {reason}" for topic, reason in sorted(refused.items())))
        for topic, reason in sorted(refused.items()):
            self._tell(f"left out topic {topic}: {reason}")
        return [topic for topic in topics if topic not in refused]

    def detach(self, topics: Iterable[str]) -> None:
        """Make topics that are only inspected ordinary ones again."""
        for topic in topics:
            changes = [Change(key, Operation.DELETE, None) for key in sorted(OF_LINK)]
            alter_settings(self._brokers.first, ResourceType.TOPIC, topic, changes, validate_only=False)

    # The steps

    def compare(self, topics: Sequence[str]) -> list[LostPart]:
        """Refuse writers, and find the common offsets; returns the offsets beyond, of topics that are not cut yet."""
        states = self.states(topics)
        at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        for topic, state in states.items():
            is_stopped = state == MIRRORING and any(each.state == "stopped" for each in self._statuses([topic]))
            if state == INSPECTING or is_stopped:
                self._set(topic, {MIRROR_STATE: COMPARING, MIRROR_LOST_TOPIC: f"{topic}.lost-{at}"})
                states[topic] = COMPARING
        comparing = [topic for topic, state in states.items() if state == COMPARING]
        if refused := self._wait_for("compared", set(comparing)):
            raise Failure("; ".join(f"topic {topic}: {reason}" for topic, reason in sorted(refused.items())))
        return self.beyond(comparing)

    def beyond(self, topics: Sequence[str]) -> list[LostPart]:
        """The offsets beyond the common ones."""
        return [
            LostPart(
                each.topic, each.partition, max(min(each.common_offset, each.end_offset), each.start_offset), each.end_offset
            )
            for each in self._statuses(topics)
        ]

    def save(self, parts: Sequence[LostPart]) -> None:
        """Save the records beyond in a topic beside each topic; fills `records`, `aborted` and `saved_in`."""
        with _client(self._connection) as client:
            topics = {part.topic for part in parts if part.end > part.common}
            lost = {topic: client.describe_topic_config(topic, only_own=True)[MIRROR_LOST_TOPIC] or "" for topic in topics}
            partitions = client.topics_by_name(sorted(topics))
            for topic, name in sorted(lost.items()):
                self._make_lost_topic(client, partitions[topic], name)
            for part in parts:
                part.records = 0
                if part.end > part.common:
                    part.saved_in = lost[part.topic]
                    _save_part(client, part)

    def move_groups_back(self, parts: Sequence[LostPart]) -> tuple[int, list[str]]:
        """Move committed offsets beyond the common offsets back to these; otherwise consumers would later skip records of the source.

        Returns:
            The number of moved offsets, and the groups with members here, whose consumers learn of the cut by the leader epoch.
        """
        ends = {(part.topic, part.partition): part.common for part in parts if part.end > part.common}
        if not ends:
            return 0, []
        moved, busy = 0, []
        with _client(self._connection) as client:
            for group in self._groups():
                committed = client.committed_offsets(group, ends)
                late = {each: ends[each] for each, found in committed.items() if found.offset > ends[each]}
                try:
                    if late:
                        client.commit_offsets(group, late)
                        moved += len(late)
                except (ClientError, KafkaError):  # such as UNKNOWN_MEMBER_ID
                    busy.append(group)
        return moved, busy

    def _groups(self) -> list[str]:
        """The groups of consumers."""
        found: set[str] = set()
        for _, wire in self._brokers:
            answer = wire.request(ListGroupsRequest())
            if answer.error_code:
                raise Failure(f"cannot list the groups: {code_name(answer.error_code)}")
            found.update(each.group_id for each in answer.groups if each.group_type.lower() != "share")
        return sorted(found)

    def _make_lost_topic(self, client: BlockingClient, topic: Topic, name: str) -> None:
        settings = client.describe_topic_config(topic.name)
        size = int(settings.get("max.message.bytes") or LARGEST_MESSAGE) + ROOM_FOR_HEADERS
        configs = {"retention.ms": "-1", "max.message.bytes": str(size), "message.timestamp.after.max.ms": str(2**63 - 1)}
        client.ensure_topic(NewTopic(name, len(topic.partitions), -1, configs))

    def cut(self, topics: Sequence[str]) -> None:
        """Have the leaders cut the logs, and follow the source from there."""
        states = self.states(topics)
        for topic in [topic for topic, state in states.items() if state == COMPARING]:
            self._set(topic, {MIRROR_STATE: TRUNCATING})
        cutting = {topic for topic, state in states.items() if state in {COMPARING, TRUNCATING}}
        if refused := self._wait_for("truncated", cutting):
            raise Failure("; ".join(f"topic {topic}: {reason}" for topic, reason in sorted(refused.items())))
        for topic in sorted(cutting):
            self._set(topic, {MIRROR_STATE: MIRRORING})
        self._wait_for(MIRRORING, cutting)

    # Requests

    def _set(self, topic: str, settings: Mapping[str, str]) -> None:
        changes = [Change(key, Operation.SET, value) for key, value in settings.items()]
        alter_settings(self._brokers.first, ResourceType.TOPIC, topic, changes, validate_only=False)

    def _statuses(self, topics: Iterable[str]) -> list[PartitionStatus]:
        wanted = set(topics)
        return [each for each in view(self._brokers, self._link).partitions if each.topic in wanted]

    def _wait_for(self, state: str, topics: set[str]) -> dict[str, str]:
        """Wait until all partitions of the topics have a state; returns the topics that are refused instead, with the reasons."""
        with _client(self._connection) as client:
            counts = {name: len(topic.partitions) for name, topic in client.topics_by_name(sorted(topics)).items()}
        deadline = time.monotonic() + self._wait_s
        while True:
            found = view(self._brokers, self._link)
            refused = {topic: found.refused[topic] for topic in topics if topic in found.refused}
            refused.update({each.topic: each.reason for each in found.partitions
                            if each.topic in topics and each.state == "stopped"})  # fmt: skip
            late = {
                topic: counts[topic] - sum(each.topic == topic and each.state == state for each in found.partitions)
                for topic in topics - refused.keys()
            }
            if not any(late.values()):
                return refused
            if time.monotonic() >= deadline:
                raise Failure(self._too_late(state, found, late))
            time.sleep(LOOK_AGAIN_S)

    def _too_late(self, state: str, found: LinkView, late: Mapping[str, int]) -> str:
        topic, count = next((topic, count) for topic, count in sorted(late.items()) if count)
        reasons = {each.reason for each in found.partitions if each.topic == topic and each.reason}
        why = "; ".join([*found.errors, *sorted(reasons)]) or "no reason was told"
        return f"{count} partitions of topic {topic} are not {state} in time: {why}. Repeat the command to go on"


# The records


def _client(connection: Connection) -> BlockingClient:
    """A client of the cluster; raises Failure."""
    connection.require_broker()
    limit_ms = str(max(1, round(connection.timeout_s * 1000)))
    limits = {"client.id": "barnabas-cli", "request.timeout.ms": limit_ms, "default.api.timeout.ms": limit_ms}
    try:
        return BlockingClient(
            ClientConfig.from_options({**limits, **connection.properties, "bootstrap.servers": connection.bootstrap})
        )
    except ConfigError as error:
        raise Failure(str(error)) from error


def _save_part(client: BlockingClient, part: LostPart) -> None:
    """Save the records beyond one partition's common offset. Nothing is saved again that an earlier run has saved."""
    try:
        outcomes = Outcomes()
        for batches in _pieces(client, part.topic, part.partition, part.common, part.end):
            outcomes.note(batches)
        saved, last = _saved_before(client, part)
        for batch, count in batches_of(_lost(client, part, outcomes, last), part.topic, part.partition):
            client.produce(part.saved_in, part.partition, batch)
            saved += count
    except (ClientError, KafkaError) as error:
        raise Failure(f"the records of {part.topic}-{part.partition} cannot be saved: {error}") from error
    part.records, part.aborted = saved, outcomes.aborted


def _lost(client: BlockingClient, part: LostPart, outcomes: Outcomes, last: int) -> Iterator[LostRecord]:
    """The records to save in the order of their offsets, after `last`."""
    if outcomes.early:
        since = outcomes.first_commit_ms - LONGEST_TRANSACTION_MS
        found = client.list_offsets({(part.topic, part.partition): max(since, 0)})[part.topic, part.partition].offset
        start = found if 0 <= found < part.common else part.common
        pieces = _pieces(client, part.topic, part.partition, start, part.common)
        yield from (each for each in early_records(pieces, outcomes.early, part.common) if each.record.offset > last)
    for batches in _pieces(client, part.topic, part.partition, part.common, part.end):
        yield from outcomes.records(batches, max(part.common, last + 1))


def _pieces(client: BlockingClient, topic: str, partition: int, start: int, end: int) -> Iterator[bytes]:
    """The batches of [start, end)."""
    if start >= end:
        return
    reader = PartitionReader(client, topic, partition, start, end)
    try:
        while reader.offset < end:
            before = reader.offset
            answer = reader.read()
            if reader.offset == before:
                if len(answer.records) or answer.high_watermark < end:
                    raise Failure(f"{topic}-{partition} cannot be read at offset {before}")
                return  # compaction has left nothing up to the end
            yield bytes(answer.records)
    finally:
        reader.close()


def _saved_before(client: BlockingClient, part: LostPart) -> tuple[int, int]:
    """The number of records that an earlier run has saved, and the offset that the last of them had; (0, -1) if there was none."""
    key = part.saved_in, part.partition
    start, end = (client.list_offsets({key: when})[key].offset for when in (EARLIEST, LATEST))
    if end <= start:
        return 0, -1
    records = bytes(client.fetch(*key, end - 1).records)
    origins = [origin_of(record) for position, _ in split_batches(records, allow_partial=True)
               for record in iterate_records(records, position)]  # fmt: skip
    return end - start, max((origin for origin in origins if origin is not None), default=-1)


def summary(parts: Sequence[LostPart]) -> dict[str, int]:
    """The number of saved records by topic."""
    found: dict[str, int] = defaultdict(int)
    for part in parts:
        found[part.topic] += part.records or 0
    return dict(found)
