"""The names that one right's questions are about, and what is there before they are asked.

Each right has topics, groups and transactional ids of its own, so that what it lets somebody do leaves the others alone. The bindings are
about `MINE`; `mine` and `other` exist, `missing` and `absent` do not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.differential.wire import Line

MINE = ("mine", "missing", "new", "automatic", "ours")
PARTITIONS = 2
INTERNALS = "Request Request("  # Kafka's message has internal objects and ports; barnabas sends a short text
ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass
class Place:
    """Where the questions of one right are asked."""

    prefix: str
    node_id: int
    ids: dict[str, UUID] = field(default_factory=dict)

    def name(self, word: str) -> str:
        return f"{self.prefix}-{word}"

    def word(self, text: str) -> str:
        """The text without the names and ids that only this right has."""
        for word, topic_id in self.ids.items():
            text = text.replace(str(topic_id), f"<id of {word}>")
        text = ID.sub("<an id>", text)
        if text.startswith(INTERNALS):
            return "Cluster authorization failed."
        return text.replace(f"{self.prefix}-", "")

    def prepare(self, line: Line) -> None:
        """Have somebody who may do everything make what is asked about."""
        words = ("mine", "other")
        topics = [CreatableTopic(name=self.name(word), num_partitions=PARTITIONS, replication_factor=1) for word in words]
        line.send(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
        answer = line.receive()
        for word, topic in zip(words, answer.topics, strict=True):
            assert topic.error_code == 0, topic
            self.ids[word] = topic.topic_id
        while any(topic.error_code for topic in self._described(line, words)):
            continue
        self._commit(line, words)
        for word in ("ours", "foreign"):
            while True:
                line.send(InitProducerIdRequest(transactional_id=self.name(word), transaction_timeout_ms=60_000), 4)
                if not line.receive().error_code:
                    break

    def _described(self, line: Line, words: tuple[str, ...]) -> list[Any]:
        topics = [MetadataRequestTopic(name=self.name(word)) for word in words]
        line.send(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 9)
        return list(line.receive().topics)

    def _commit(self, line: Line, words: tuple[str, ...]) -> None:
        for group in words:
            topics = [
                OffsetCommitRequestTopic(
                    name=self.name(word), partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=0)]
                )
                for word in words
            ]
            request = OffsetCommitRequest(
                group_id=self.name(group), generation_id_or_member_epoch=-1, member_id="", topics=topics
            )
            while True:
                line.send(request, 8)
                answer = line.receive()
                if not any(p.error_code for topic in answer.topics for p in topic.partitions):
                    break
