"""The partitions that a query reads now, and the offsets of a position from a user. Does not depend on Spark.

Rules
  1. The look-up of a missing topic is repeated a few times, because some brokers may not know a topic yet that was just
     created. A topic that is deleted after the listing has no offsets. Then the listing and the offset look-up are repeated,
     the same number of times. Each of these listings repeats its own look-ups too.
  2. Only the listing of the query's partitions records topic ids: if the id of a topic has changed, the topic was deleted and
     created again. A topic that is not listed loses its id, so that old offsets never get the id of a later topic. For the same
     reason, look-ups after that of the end offsets do not record ids.
  3. If an id or a partition is missing in the metadata, it is gone only if all brokers agree: a single broker may have old
     metadata. The same is true for records that a leader does not have: only the answer of the leader that all brokers name
     counts.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping

from barnabas.client.batches import next_offset, whole_batches
from barnabas.client.blocking import BlockingClient
from barnabas.client.cluster import Topic, UnknownTopic
from barnabas.pipelines.exactly_once.state import TOPIC as SINKS_TOPIC
from barnabas.pipelines.offsets import EARLIEST, LATEST, Offsets, OptionError, Position, TopicPartition, id_text, names
from barnabas.pipelines.options import ReadOptions

logger = logging.getLogger(__name__)

SAMPLE_BYTES = 64 << 10


class Assignment:
    """The partitions of one query.

    Args:
        options: the options of the query.
        client: the client for its requests.
    """

    def __init__(self, options: ReadOptions, client: BlockingClient) -> None:
        self._options = options
        self._client = client
        self.topic_ids: dict[str, str] = {}  # topic name -> id, from the last metadata
        self._seen: set[str] = set()  # topics that existed at any time

    def partitions(
        self, known: Iterable[TopicPartition] = (), ids: Mapping[str, str] | None = None, *, may_be_gone: bool = False
    ) -> list[TopicPartition]:
        """The current partitions of the query.

        Args:
            known: the partitions of a running query; with failOnDataLoss=false, their topics and topics seen earlier may be gone.
            ids: the earlier ids of their topics.
            may_be_gone: with failOnDataLoss=false, any topic may be gone.

        Raises:
            UnknownTopic: a topic or partition of the options does not exist.
        """
        options = self._options
        self.topic_ids = {}
        known = tuple(known)
        if options.pattern is not None:
            pattern = re.compile(options.pattern)
            topics = self._client.topics().items()
            found = {name: topic for name, topic in topics if not topic.is_internal and name != SINKS_TOPIC}
            matching = {name: topic for name, topic in found.items() if pattern.fullmatch(name)}
            return self._note(self._agreed(matching, known, ids or {}))
        wanted = options.subscribe or tuple(dict.fromkeys(topic for topic, _ in options.assign or ()))
        found = self._find(wanted, None if may_be_gone else {topic for topic, _ in known} | self._seen)
        named = [tp for tp in options.assign or () if tp[0] in found]
        found = self._agreed(found, [*known, *named], ids or {})
        there = self._note(found)
        if options.assign is None:
            return there
        for topic, partition in options.assign:
            if topic in found and partition not in found[topic].partitions:
                raise UnknownTopic(topic, partition)
        return [tp for tp in options.assign if tp in there]

    def _agreed(self, found: Mapping[str, Topic], expected: Iterable[TopicPartition], ids: Mapping[str, str]) -> dict[str, Topic]:
        """The listed topics. If they are not the expected ones, all brokers must agree on them first."""
        doubted = {topic for topic, partition in expected if topic not in found or partition not in found[topic].partitions}
        doubted |= {
            name for name, topic in found.items() if (now := id_text(topic.topic_id)) and ids.get(name, now) not in ("", now)
        }
        if not doubted:
            return dict(found)
        sure = {name: topic for name, topic in found.items() if name not in doubted}
        return {**sure, **self._client.agreed_topics(doubted)}

    def agree(self, topics: Iterable[str]) -> None:
        """Wait until all brokers agree on the leaders of these topics, so that the next look-up does not go to a former
        leader."""
        self._client.agreed_topics(topics)

    def looked_up(
        self, partitions: Callable[[], list[TopicPartition]], offsets: Callable[[list[TopicPartition]], Offsets]
    ) -> Offsets:
        """The offsets of the listed partitions; raises UnknownTopic like the two calls. If a topic is deleted between them, it
        repeats both."""
        left = self._options.fetch_offset_retries
        while True:
            there = partitions()
            try:
                return offsets(there)
            except UnknownTopic as error:
                left -= 1
                if not left:
                    raise
                logger.warning("event=topic-gone-since-listed topic=%r partition=%s", error.topic, error.partition)
            time.sleep(self._options.fetch_offset_retry_interval_ms / 1000)

    def beginnings(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The earliest offsets of the `partitions` that exist."""
        wanted = list(partitions)
        return self.looked_up(lambda: self._existing(wanted), lambda there: self.lookup(there, EARLIEST))

    def _existing(self, wanted: list[TopicPartition]) -> list[TopicPartition]:
        found = self._client.topics_by_name(sorted({topic for topic, _ in wanted})) if wanted else {}
        found = self._agreed(found, [tp for tp in wanted if tp[0] in found], {})
        return [(topic, partition) for topic, partition in wanted if topic in found and partition in found[topic].partitions]

    def _note(self, topics: Mapping[str, Topic]) -> list[TopicPartition]:
        self._seen.update(topics)
        self.topic_ids.update({name: id_text(topic.topic_id) for name, topic in topics.items()})
        return [(name, partition) for name, topic in sorted(topics.items()) for partition in topic.partitions]

    def _find(self, wanted: tuple[str, ...], known: set[str] | None) -> dict[str, Topic]:
        """Find topics by name. With failOnDataLoss=false those of `known` may be missing (None: all)."""
        for attempt in range(self._options.fetch_offset_retries):
            if attempt:
                time.sleep(self._options.fetch_offset_retry_interval_ms / 1000)
            found = self._client.topics_by_name(wanted)
            missing = [topic for topic in wanted if topic not in found]
            if not missing:
                break
        for topic in missing:
            if self._options.fail_on_data_loss or (known is not None and topic not in known):
                raise UnknownTopic(topic)
        return found

    def resolve(self, position: Position, partitions: list[TopicPartition], *, starting: bool) -> Offsets:
        """A position as offsets.

        Raises:
            OptionError: the position names other partitions than those of the query, or all records are older than its timestamp.
        """
        if position.word is not None:
            return self.lookup(partitions, position.word)
        if position.offsets is not None:
            of_topics = {tp: position.topics[tp[0]] for tp in partitions if tp[0] in position.topics}
            if unread := position.topics.keys() - {topic for topic, _ in of_topics}:
                raise OptionError(f"Offsets are given for topics that the query does not read: {', '.join(sorted(unread))}")
            offsets = {**position.offsets, **of_topics}
            _check_all_named(offsets, partitions, "start" if starting else "end")
            return self._settle(offsets)
        if position.timestamps_ms is not None:
            _check_all_named(position.timestamps_ms, partitions, "timestamp based " + ("starting" if starting else "ending"))
            timestamps = position.timestamps_ms
        else:
            timestamps = dict.fromkeys(partitions, position.timestamp_ms or 0)
        offsets = self.at_timestamps(timestamps)
        for tp, offset in offsets.items():
            if offset == LATEST and not position.latest_on_no_match:
                raise OptionError(
                    f"No offset matched from request of topic-partition {names([tp])} and timestamp {timestamps[tp]}."
                )
        return self._settle(offsets)

    def at_timestamps(self, timestamps: Mapping[TopicPartition, int]) -> Offsets:
        """The offset of the first record that is not older than the timestamp, or LATEST if all records are older."""
        if not timestamps:
            return {}
        listed = self._client.list_offsets(timestamps)
        if none := {tp: timestamps[tp] for tp in timestamps if listed[tp].offset == LATEST}:
            self.agree(topic for topic, _ in none)
            listed |= self._client.list_offsets(none)
        return {tp: listed[tp].offset for tp in timestamps}

    def lookup(self, partitions: Iterable[TopicPartition], word: int) -> Offsets:
        """The EARLIEST or LATEST offsets."""
        wanted = dict.fromkeys(partitions, word)
        listed = self._client.list_offsets(wanted) if wanted else {}
        return {tp: listed[tp].offset for tp in sorted(wanted)}

    def written(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The ends of `partitions`, including records of open transactions."""
        wanted = dict.fromkeys(partitions, LATEST)
        listed = self._client.list_offsets(wanted, read_committed=False) if wanted else {}
        return {tp: listed[tp].offset for tp in wanted}

    def bytes_per_offset(self, tp: TopicPartition, offset: int) -> float | None:
        """The average bytes per offset near `offset`, from a sample of batches; None if there are no records."""
        records = self._client.fetch(*tp, offset, max_bytes=SAMPLE_BYTES).records
        sizes, first = 0, offset  # a response starts with the batch that contains the offset
        for position, size, base_offset in whole_batches(records):
            first = base_offset if position == 0 else first
            sizes += size
        return sizes / (next_offset(records, offset) - first) if sizes else None

    def _settle(self, offsets: Offsets) -> Offsets:
        """Replace the offsets that mean "latest" or "earliest" by real ones."""
        open_ones = {tp: offset for tp, offset in offsets.items() if offset in (LATEST, EARLIEST)}
        listed = self._client.list_offsets(open_ones) if open_ones else {}
        return {tp: listed[tp].offset if tp in listed else offset for tp, offset in offsets.items()}


def _check_all_named(given: Offsets, partitions: list[TopicPartition], kind: str) -> None:
    if given.keys() != set(partitions):
        raise OptionError(
            f"Partitions specified for Kafka {kind} offsets don't match what are assigned. Maybe topic partitions are created or "
            f"deleted while the query is running. Use -1 for latest, -2 for earliest. "
            f"Specified: {names(given)} Assigned: {names(partitions)}"
        )
