"""The policies of a controller: what users' classes say to topics that are to be made and settings that are to be changed.

Owns the order in which they are asked, and the thread that they run in.

Rules
  1. A policy is asked about what the controller would do: a request that is refused anyway does not get there. So each command is planned,
     its policies are asked, and what they let pass is carried out.
  2. One command at a time does this: what a policy was asked about is still so when it is carried out.
  3. A policy is a user's code and may take its time. It runs in a thread of its own, so everything but topics and settings goes on. There
     is no time limit. Where a client has closed its connection meanwhile, what it asked for is not done.
  4. What a policy raises refuses the topic or resource it was asked about, and no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial

from barnabas.cluster.metadata.image import MetadataImage
from barnabas.cluster.planning.configs import ResourceChange, settings_after
from barnabas.cluster.planning.topics import NewTopic, TopicOutcome
from barnabas.errors import ErrorCode, KafkaError
from barnabas.plugins.policies import AlterConfigMetadata, AlterConfigPolicy, CreateTopicMetadata, CreateTopicPolicy
from barnabas.protocol.values import ResourceType

logger = logging.getLogger(__name__)
Question = Callable[[], None]


class Policies:
    """See the module.

    Args:
        create_topic, alter_config: what is asked; None where nothing is.
        thread: where they run; closed by `close`.
    """

    def __init__(self, create_topic: CreateTopicPolicy | None, alter_config: AlterConfigPolicy | None, thread: Executor) -> None:
        self._create_topic = create_topic
        self._alter_config = alter_config
        self._thread = thread
        self.turn = asyncio.Lock()

    async def refused_topics(self, wanted: Sequence[NewTopic], planned: Sequence[TopicOutcome]) -> dict[str, TopicOutcome]:
        """Those of the topics that could be made which a policy does not want."""
        requests = {request.name: request for request in wanted}
        good = [outcome for outcome in planned if outcome.error is None]
        answers = await self._ask([partial(self._ask_of_topic, requests[o.name], o) for o in good])
        return {o.name: TopicOutcome(o.name, error) for o, error in zip(good, answers, strict=True) if error is not None}

    def _ask_of_topic(self, request: NewTopic, outcome: TopicOutcome) -> None:
        settings, topic = outcome.settings or {}, outcome.topic
        if settings and self._alter_config is not None:
            self._alter_config.validate(AlterConfigMetadata(ResourceType.TOPIC.name, request.name, dict(settings)))
        if self._create_topic is None or topic is None:
            return
        assigned = {partition: list(brokers) for partition, brokers in request.assignments} or None
        self._create_topic.validate(
            CreateTopicMetadata(
                request.name,
                None if assigned else len(topic.partitions),
                None if assigned else len(topic.partitions[0].replicas),
                assigned,
                dict(settings),
            )
        )

    async def refused_changes(
        self, image: MetadataImage, wanted: Sequence[ResourceChange], planned: Sequence[KafkaError | None]
    ) -> list[KafkaError | None]:
        """`planned` with what a policy does not want refused, too."""
        policy = self._alter_config
        if policy is None:
            return list(planned)
        good = [place for place, error in enumerate(planned) if error is None]
        asked = [altered(wanted[place], image.config(ResourceType(wanted[place].kind), wanted[place].name)) for place in good]
        answers = await self._ask([partial(policy.validate, metadata) for metadata in asked])
        outcomes = list(planned)
        for place, error in zip(good, answers, strict=True):
            outcomes[place] = error
        return outcomes

    async def _ask(self, questions: Sequence[Question]) -> list[KafkaError | None]:
        """What each question is answered with, in turn."""
        if not questions:
            return []
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: [_answer(ask) for ask in questions])

    def close(self) -> None:
        """Blocks until a policy that is being asked is done."""
        self._thread.shutdown()


def altered(change: ResourceChange, before: Mapping[str, str]) -> AlterConfigMetadata:
    """What a request changes: as in Kafka, settings that stay as they are left out but for brokers, and those that go because the request
    names all that a resource shall have."""
    after = settings_after(change, before)
    is_broker = change.kind == ResourceType.BROKER
    names = dict.fromkeys(name for name, *_ in change.changes)
    configs = {name: after.get(name) for name in names if is_broker or after.get(name) != before.get(name)}
    return AlterConfigMetadata(ResourceType(change.kind).name, change.name, configs)


def _answer(ask: Question) -> KafkaError | None:
    try:
        ask()
    except KafkaError as error:
        return error
    except Exception:  # a user's code may raise anything; as in Kafka, who asked is not told what
        logger.exception("event=policy-failed")
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return None
