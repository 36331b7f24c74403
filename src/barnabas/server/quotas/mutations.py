"""Quotas on changes of metadata (KIP-599): each partition that a client creates or deletes costs one token.

Clients that can handle it (by the version of their request) get an error for topics that they cannot pay for. Other clients are served,
and must wait afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from barnabas.cluster.planning.deletion import DeleteOutcome, resolve_deletions
from barnabas.cluster.planning.topics import MorePartitions, NewTopic, TopicOutcome, is_legal_name
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.api_keys import ApiKey

if TYPE_CHECKING:
    from barnabas.cluster.membership.member import Member
    from barnabas.cluster.membership.standalone_controller import StandaloneController
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.config.broker import BrokerConfig
    from barnabas.quota.meters import Meter
    from barnabas.server.quotas.client_quotas import ClientQuotas
    from barnabas.server.requests import RequestContext

STRICT_SINCE: dict[int, int] = {  # first versions of requests that may be refused
    ApiKey.METADATA: 0,
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.DELETE_TOPICS: 5,
    ApiKey.CREATE_PARTITIONS: 3,
}


def is_served_anyway(api_key: int, version: int) -> bool:
    """Whether a request changes metadata and may not be refused, so that its client waits afterwards."""
    return version < STRICT_SINCE.get(api_key, 0)


REFUSED = "The throttling quota has been exceeded."


class MutationBroker(Protocol):
    """The parts of the broker that this module uses."""

    client_quotas: ClientQuotas | None
    config: BrokerConfig
    controller: StandaloneController | Member
    quotas: ClientQuotas

    @property
    def metadata(self) -> MetadataImage: ...


class MutationQuota:
    """The quota that pays for one request.

    Args:
        meter: the meter of the client.
        strict: whether to refuse what the client cannot pay for.
    """

    __slots__ = ("_broker", "_meter", "_strict")

    def __init__(self, broker: MutationBroker, meter: Meter, *, strict: bool) -> None:
        self._broker = broker
        self._meter = meter
        self._strict = strict

    async def create_topics(self, wanted: Sequence[NewTopic], *, validate_only: bool) -> list[TopicOutcome]:
        """Create topics, with one outcome for each name. Topics that cannot be created for other reasons cost nothing."""
        controller = self._broker.controller
        planned = await controller.create_topics(wanted, validate_only=True)
        refused = {
            outcome.name: TopicOutcome(outcome.name, error)
            for outcome in planned
            if outcome.topic is not None and (error := self._pay(len(outcome.topic.partitions))) is not None
        }
        rest = [topic for topic in wanted if topic.name not in refused]
        outcomes = planned if validate_only or not rest else await controller.create_topics(rest)
        made = {outcome.name: outcome for outcome in outcomes} | refused
        return [made[outcome.name] for outcome in planned]

    def refuse_new(self, names: Sequence[str]) -> dict[str, KafkaError | None]:
        """Errors for topics that the client cannot pay for. It asks again, as for a topic that is being created."""
        cost = self._broker.config.num_partitions
        return {
            name: KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            for name in names
            if is_legal_name(name) and self._pay(cost) is not None
        }

    async def create_partitions(self, wanted: Sequence[MorePartitions], *, validate_only: bool) -> list[TopicOutcome]:
        """Add partitions, with one outcome for each name."""
        controller, image = self._broker.controller, self._broker.metadata
        planned = await controller.create_partitions(wanted, validate_only=True)
        counts = {topic.name: topic.count for topic in wanted}
        refused = {}
        for outcome in planned:
            topic = image.topic(outcome.name)
            if outcome.error is None and topic is not None:
                error = self._pay(counts[outcome.name] - len(topic.partitions))
                if error is not None:
                    refused[outcome.name] = TopicOutcome(outcome.name, error)
        rest = [topic for topic in wanted if topic.name not in refused]
        outcomes = planned if validate_only or not rest else await controller.create_partitions(rest)
        made = {outcome.name: outcome for outcome in outcomes} | refused
        return [made[outcome.name] for outcome in planned]

    async def delete_topics(self, wanted: Sequence[tuple[str | None, UUID]]) -> list[DeleteOutcome]:
        """Delete topics, with one outcome for each topic."""
        image = self._broker.metadata
        refused = []
        for outcome in resolve_deletions(image, wanted):
            topic = None if outcome.error is not None or outcome.name is None else image.topic(outcome.name)
            error = None if topic is None else self._pay(len(topic.partitions))
            if error is not None:
                refused.append(outcome._replace(error=error))
        names = {outcome.name for outcome in refused}
        rest = [(name, topic_id) for name, topic_id in wanted if (name or image.topic_name(topic_id)) not in names]
        return refused + (await self._broker.controller.delete_topics(rest) if rest else [])

    def _pay(self, cost: int) -> KafkaError | None:
        now_ms = self._broker.quotas.now_ms()
        if self._strict and self._meter.throttle_ms(now_ms):
            return KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, REFUSED)
        self._meter.take(cost, now_ms)
        return None

    @property
    def throttle_ms(self) -> int:
        """The throttle time in ms for the answer."""
        wait_ms = self._meter.throttle_ms(self._broker.quotas.now_ms())
        self._meter.throttled_ms += wait_ms
        return wait_ms


def mutation_quota(broker: MutationBroker, context: RequestContext) -> MutationQuota | None:
    """The quota that pays for the request of `context`; None if it is free."""
    quotas = broker.client_quotas
    budget = None if quotas is None else quotas.budget(context.principal, context.client_id)
    if budget is None or budget.mutations is None:
        return None
    return MutationQuota(broker, budget.mutations, strict=context.api_version >= STRICT_SINCE[context.api_key])
