"""The policies of a controller: users' classes that decide on creating topics and changing settings.

Owns the order of the calls, and the thread of the policies.

Rules
  1. A policy sees only requests that the controller would accept. So each command is planned first, then its policies are
     called, and then the accepted part is executed.
  2. Only one command at a time does this, so nothing changes between the call of the policy and the execution.
  3. A policy is a user's code and may be slow. It runs in a thread of its own, so only changes of topics and settings wait.
     There is no time limit. If the client closes its connection meanwhile, its request is not executed.
  4. An exception of a policy refuses only the topic or resource of this call.
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
        create_topic, alter_config: the policies; None if there is none.
        thread: runs them; closed by `close`.
    """

    def __init__(self, create_topic: CreateTopicPolicy | None, alter_config: AlterConfigPolicy | None, thread: Executor) -> None:
        self._create_topic = create_topic
        self._alter_config = alter_config
        self._thread = thread
        self.turn = asyncio.Lock()

    async def refused_topics(self, wanted: Sequence[NewTopic], planned: Sequence[TopicOutcome]) -> dict[str, TopicOutcome]:
        """The refusals of a policy for topics that could be created."""
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
        """`planned`, with the refusals of the policy added."""
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
        """Call the policy for each item, one after the other."""
        if not questions:
            return []
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: [_answer(ask) for ask in questions])

    def close(self) -> None:
        """End the policies' thread; blocks until a running policy has ended."""
        self._thread.shutdown()


def altered(change: ResourceChange, before: Mapping[str, str]) -> AlterConfigMetadata:
    """The settings that a request changes. As in Kafka, they do not include settings that a full replacement removes, nor
    unchanged settings (except for brokers)."""
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
    except Exception:  # user code may raise anything; as in Kafka, the client does not see the error
        logger.exception("event=policy-failed")
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return None
