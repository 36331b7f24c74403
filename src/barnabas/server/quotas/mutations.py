"""Changes of metadata held to the quota of who asks for them (KIP-599): a partition made or deleted costs one token.

Clients that know how (by the version of their request) are refused topics they cannot pay; others are served and told to wait.
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
    """Of one request.

    Args:
        meter: of who asks.
        strict: whether what cannot be paid is refused.
    """

    __slots__ = ("_broker", "_meter", "_strict")

    def __init__(self, broker: MutationBroker, meter: Meter, *, strict: bool) -> None:
        self._broker = broker
        self._meter = meter
        self._strict = strict

    async def create_topics(self, wanted: Sequence[NewTopic], *, validate_only: bool) -> list[TopicOutcome]:
        """One outcome for each name; what could not be made anyway costs nothing."""
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
        """Topics that are not made by asking for them, though they might be: the client asks again, as for one that is being made."""
        cost = self._broker.config.num_partitions
        return {
            name: KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            for name in names
            if is_legal_name(name) and self._pay(cost) is not None
        }

    async def create_partitions(self, wanted: Sequence[MorePartitions], *, validate_only: bool) -> list[TopicOutcome]:
        """One outcome for each name."""
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
        """One outcome for each topic that is meant."""
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
        """The time to wait that the answer tells."""
        wait_ms = self._meter.throttle_ms(self._broker.quotas.now_ms())
        self._meter.throttled_ms += wait_ms
        return wait_ms


def mutation_quota(broker: MutationBroker, context: RequestContext) -> MutationQuota | None:
    """The quota that the request of `context` pays from; None where it need not pay."""
    quotas = broker.client_quotas
    budget = None if quotas is None else quotas.budget(context.principal, context.client_id)
    if budget is None or budget.mutations is None:
        return None
    return MutationQuota(broker, budget.mutations, strict=context.api_version >= STRICT_SINCE[context.api_key])
