"""A fetch session with one broker (KIP-227): the broker remembers what is fetched, so that a request names only what changed.

Owns which partitions the broker knows of and with which offsets, and the session's id and epoch. No I/O: `request` gives what to send,
`receive` takes the answer. Worth it from a few partitions on; one partition moves its offset in every request and gains nothing.

Rules
  1. Epoch 0 opens a session with everything, later ones carry differences, and the epoch grows by one with each answer.
  2. After FETCH_SESSION_ID_NOT_FOUND or INVALID_FETCH_SESSION_EPOCH, or a lost answer (`reset`), the next request opens another.
  3. The broker's view is what was sent, not what is wanted: a request that was never answered leaves both apart, hence rule 2.

Ugly: from version 13 topics go by id, before by name (KIP-516). Both are kept for each partition, and the codec picks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from barnabas.client.config import ClientConfig
from barnabas.client.errors import PartitionError
from barnabas.client.operations import FETCH_RESPONSE_BYTES, fetched
from barnabas.client.results import Fetched, TopicPartition
from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic

NO_SESSION, FIRST_EPOCH, LAST_EPOCH = 0, 0, 2**31 - 1
SESSION_ERRORS = {
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Where to fetch a partition from."""

    topic_id: UUID
    offset: int
    leader_epoch: int = -1


class FetchSession:
    """The session with one broker.

    Args:
        config: for sizes, waits and the isolation level.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._session_id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._known: dict[TopicPartition, Wanted] = {}  # as the broker remembers them
        self._names: dict[UUID, str] = {}

    @property
    def epoch(self) -> int:
        """Of the next request."""
        return self._epoch

    def request(self, wanted: Mapping[TopicPartition, Wanted]) -> FetchRequest:
        """The request that makes the session want exactly `wanted`."""
        full = self._epoch == FIRST_EPOCH
        changed = {tp: item for tp, item in wanted.items() if full or self._known.get(tp) != item}
        forgotten = {} if full else {tp: item for tp, item in self._known.items() if self._is_forgotten(tp, wanted)}
        self._known = dict(wanted)
        self._names = {item.topic_id: topic for (topic, _), item in wanted.items()}
        return FetchRequest(
            max_wait_ms=self._config.fetch_max_wait_ms,
            min_bytes=self._config.fetch_min_bytes,
            max_bytes=FETCH_RESPONSE_BYTES,
            isolation_level=int(self._config.read_committed),
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=self._topics(changed),
            forgotten_topics_data=_forgotten(forgotten),
        )

    def receive(self, response: FetchResponse) -> dict[TopicPartition, Fetched | PartitionError]:
        """What came, by partition; partitions without news are not in it.

        Raises:
            KafkaError: the session is gone (retriable: the next request opens another), or the whole request was refused.
        """
        if response.error_code:
            code = ErrorCode(response.error_code)
            self.reset()
            raise KafkaError(code, "the fetch session" if code in SESSION_ERRORS else None)
        self._session_id = response.session_id
        if self._session_id == NO_SESSION:
            self._epoch = FIRST_EPOCH  # the broker keeps no session for us: go on with full requests
        else:
            self._epoch = 1 if self._epoch == LAST_EPOCH else self._epoch + 1
        found: dict[TopicPartition, Fetched | PartitionError] = {}
        for topic in response.responses:
            name = topic.topic or self._names.get(topic.topic_id, "")
            for item in topic.partitions:
                tp = name, item.partition_index
                found[tp] = PartitionError(ErrorCode(item.error_code), *tp) if item.error_code else fetched(item)
        return found

    def reset(self) -> None:
        """Forget the session: its last answer was lost, or the broker does not know it any more."""
        self._session_id, self._epoch = NO_SESSION, FIRST_EPOCH
        self._known.clear()

    def _is_forgotten(self, tp: TopicPartition, wanted: Mapping[TopicPartition, Wanted]) -> bool:
        return tp not in wanted or wanted[tp].topic_id != self._known[tp].topic_id

    def _topics(self, wanted: Mapping[TopicPartition, Wanted]) -> list[FetchTopic]:
        by_topic: dict[tuple[str, UUID], list[FetchPartition]] = {}
        for (topic, partition), item in wanted.items():
            entry = FetchPartition(
                partition=partition,
                current_leader_epoch=item.leader_epoch,
                fetch_offset=item.offset,
                partition_max_bytes=self._config.fetch_bytes,
            )
            by_topic.setdefault((topic, item.topic_id), []).append(entry)
        return [FetchTopic(topic=name, topic_id=topic_id, partitions=items) for (name, topic_id), items in by_topic.items()]


def _forgotten(gone: Mapping[TopicPartition, Wanted]) -> list[ForgottenTopic]:
    by_topic: dict[tuple[str, UUID], list[int]] = {}
    for (topic, partition), item in gone.items():
        by_topic.setdefault((topic, item.topic_id), []).append(partition)
    return [ForgottenTopic(topic=name, topic_id=topic_id, partitions=items) for (name, topic_id), items in by_topic.items()]
