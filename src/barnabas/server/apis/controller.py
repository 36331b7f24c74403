"""Requests to the controller, except those for topics and settings: elections, moves of replicas, in-sync replicas.

The handlers are thin: they pass the request to the controller and return its answer. The broker serves `BETWEEN_BROKERS` only in a
cluster.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Protocol

from barnabas.cluster.metadata.image import PartitionState
from barnabas.cluster.planning import reassignment
from barnabas.cluster.planning.alter_partition import ANY_EPOCH, InSyncChange
from barnabas.cluster.planning.partitions import InSyncRequest, MoveRequest, PartitionOutcome
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import alter_partition as alter
from barnabas.protocol.messages import alter_partition_reassignments as reassign
from barnabas.protocol.messages import elect_leaders as elect
from barnabas.protocol.messages import list_partition_reassignments as listing
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from barnabas.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from barnabas.server.apis.api_versions import FEATURES
from barnabas.server.handlers import Handler, takes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Sequence
    from uuid import UUID

    from barnabas.cluster.membership.member import Member
    from barnabas.cluster.membership.standalone_controller import StandaloneController
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.protocol.base_message import Message
    from barnabas.protocol.request_headers import RequestHeader
    from barnabas.server.cluster.forwarding import Forwarder
    from barnabas.server.requests import RequestContext

FIRST_ALTER_VERSION_WITH_EPOCHS = 3
FIRST_ELECT_VERSION_WITH_TYPE = 1
LAST_FEATURES_VERSION_WITH_RESULTS = 1
MAX_MOVES_PER_REQUEST = 10_000
UPGRADE_TYPES = (1, 2, 3)  # upgrade, downgrade without loss, downgrade that may lose metadata


class ControllerBroker(Protocol):
    """The parts of the broker that this module uses."""

    controller: StandaloneController | Member

    @property
    def metadata(self) -> MetadataImage: ...


async def handle_alter_partition(
    broker: ControllerBroker, context: RequestContext, request: alter.AlterPartitionRequest
) -> alter.AlterPartitionResponse:
    """AlterPartition (api 56)."""
    wanted = [
        InSyncRequest(topic.topic_id, p.partition_index, InSyncChange(p.leader_epoch, p.partition_epoch, _in_sync(context, p)))
        for topic in request.topics
        for p in topic.partitions
    ]
    try:
        outcomes = await broker.controller.alter_partitions(request.broker_id, request.broker_epoch, wanted)
    except KafkaError as error:
        return alter.AlterPartitionResponse(error_code=error.code)
    topics: dict[UUID, list[alter.ResponsePartitionData]] = {}
    for asked, outcome in zip(wanted, outcomes, strict=True):
        topics.setdefault(asked.topic_id, []).append(_altered(outcome, asked.partition))
    return alter.AlterPartitionResponse(
        topics=[alter.ResponseTopicData(topic_id=topic_id, partitions=partitions) for topic_id, partitions in topics.items()]
    )


def _in_sync(context: RequestContext, asked: alter.RequestPartitionData) -> tuple[tuple[int, int], ...]:
    if context.api_version >= FIRST_ALTER_VERSION_WITH_EPOCHS:
        return tuple((replica.broker_id, replica.broker_epoch) for replica in asked.new_isr_with_epochs)
    return tuple((broker_id, ANY_EPOCH) for broker_id in asked.new_isr)


def _altered(outcome: PartitionOutcome, partition: int) -> alter.ResponsePartitionData:
    state = outcome.state
    if outcome.error is not None or state is None:
        code = ErrorCode.UNKNOWN_SERVER_ERROR if outcome.error is None else outcome.error.code
        return alter.ResponsePartitionData(partition_index=partition, error_code=code)
    return alter.ResponsePartitionData(
        partition_index=partition,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        partition_epoch=state.partition_epoch,
    )


async def handle_elect_leaders(
    broker: ControllerBroker, context: RequestContext, request: elect.ElectLeadersRequest
) -> elect.ElectLeadersResponse:
    """ElectLeaders (api 43)."""
    asked = request.topic_partitions
    wanted = None if asked is None else [(topic.topic, number) for topic in asked for number in topic.partitions]
    kind = request.election_type if context.api_version >= FIRST_ELECT_VERSION_WITH_TYPE else 0
    try:
        outcomes = await broker.controller.elect_leaders(kind, wanted)
    except KafkaError as error:
        return elect.ElectLeadersResponse(error_code=error.code, replica_election_results=_elected(wanted or (), error))
    results = [
        elect.ReplicaElectionResult(
            topic=topic,
            partition_result=[
                elect.PartitionResult(partition_id=o.partition, error_code=code, error_message=message)
                for o in group
                for code, message in [_told(o.error)]
            ],
        )
        for topic, group in _by_topic(outcomes)
    ]
    return elect.ElectLeadersResponse(replica_election_results=results)


def _elected(wanted: Iterable[tuple[str, int]], error: KafkaError) -> list[elect.ReplicaElectionResult]:
    code, message = _told(error)
    return [
        elect.ReplicaElectionResult(
            topic=topic, partition_result=[elect.PartitionResult(partition_id=number, error_code=code, error_message=message)]
        )
        for topic, number in wanted
    ]


async def handle_alter_partition_reassignments(
    broker: ControllerBroker, context: RequestContext, request: reassign.AlterPartitionReassignmentsRequest
) -> reassign.AlterPartitionReassignmentsResponse:
    """AlterPartitionReassignments (api 45)."""
    wanted = [MoveRequest(topic.name, p.partition_index, p.replicas) for topic in request.topics for p in topic.partitions]
    try:
        if len(wanted) > MAX_MOVES_PER_REQUEST:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
        outcomes = await broker.controller.reassign(wanted, may_change_factor=request.allow_replication_factor_change)
    except KafkaError as error:
        outcomes = [PartitionOutcome(move.topic, move.partition, error=error) for move in wanted]
    responses = [
        reassign.ReassignableTopicResponse(
            name=topic,
            partitions=[
                reassign.ReassignablePartitionResponse(partition_index=o.partition, error_code=code, error_message=message)
                for o in group
                for code, message in [_told(o.error)]
            ],
        )
        for topic, group in _by_topic(outcomes)
    ]
    return reassign.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None, responses=responses
    )


def handle_list_partition_reassignments(
    broker: ControllerBroker, context: RequestContext, request: listing.ListPartitionReassignmentsRequest
) -> listing.ListPartitionReassignmentsResponse:
    """ListPartitionReassignments (api 46)."""
    asked = request.topics
    wanted = None if asked is None else [(topic.name, topic.partition_indexes) for topic in asked]
    topics: dict[str, list[listing.OngoingPartitionReassignment]] = {}
    for topic, number, state in reassignment.under_way(broker.metadata, wanted):
        topics.setdefault(topic, []).append(_moving(number, state))
    found = [listing.OngoingTopicReassignment(name=name, partitions=partitions) for name, partitions in topics.items()]
    return listing.ListPartitionReassignmentsResponse(error_message=None, topics=found)


def _moving(number: int, state: PartitionState) -> listing.OngoingPartitionReassignment:
    return listing.OngoingPartitionReassignment(
        partition_index=number, replicas=state.replicas, adding_replicas=state.adding, removing_replicas=state.removing
    )


async def handle_unregister_broker(
    broker: ControllerBroker, context: RequestContext, request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse:
    """UnregisterBroker (api 64)."""
    try:
        await broker.controller.unregister(request.broker_id)
    except KafkaError as error:
        return UnregisterBrokerResponse(error_code=error.code, error_message=error.message)
    return UnregisterBrokerResponse(error_message=None)


def handle_update_features(
    broker: ControllerBroker, context: RequestContext, request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    """UpdateFeatures (api 57): one refused update fails all of them. No update changes a level, because all brokers have the same fixed
    levels.
    """
    refused = next((update.feature for update in request.feature_updates if not _is_at_level(update)), None)
    if refused is not None:
        message = f"Nothing was updated: {refused}: the levels of features are fixed in this cluster."
        return UpdateFeaturesResponse(error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message=message)
    if context.api_version > LAST_FEATURES_VERSION_WITH_RESULTS:
        return UpdateFeaturesResponse(error_message=None)
    results = [
        UpdatableFeatureResult(feature=update.feature, error_message=ErrorCode.NONE.name) for update in request.feature_updates
    ]
    return UpdateFeaturesResponse(error_message=None, results=results)


def _is_at_level(update: FeatureUpdateKey) -> bool:
    """Whether the feature has the level that the client asks for."""
    return FEATURES.get(update.feature) == update.max_version_level and update.upgrade_type in UPGRADE_TYPES


async def handle_allocate_producer_ids(
    broker: ControllerBroker, context: RequestContext, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    """AllocateProducerIds (api 67)."""
    try:
        block = await broker.controller.take_producer_ids()
    except KafkaError as error:
        return AllocateProducerIdsResponse(error_code=error.code)
    return AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block))


def _by_topic(outcomes: Sequence[PartitionOutcome]) -> Iterable[tuple[str, Iterable[PartitionOutcome]]]:
    return groupby(sorted(outcomes, key=lambda each: each.topic), key=lambda each: each.topic)


def _told(error: KafkaError | None) -> tuple[ErrorCode, str | None]:
    return (ErrorCode.NONE, None) if error is None else (error.code, error.message or error.code.name)


HANDLERS: dict[int, Handler[ControllerBroker]] = {
    ApiKey.ELECT_LEADERS: takes(elect.ElectLeadersRequest, handle_elect_leaders),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: takes(
        reassign.AlterPartitionReassignmentsRequest, handle_alter_partition_reassignments
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: takes(listing.ListPartitionReassignmentsRequest, handle_list_partition_reassignments),
    ApiKey.UPDATE_FEATURES: takes(UpdateFeaturesRequest, handle_update_features),
    ApiKey.UNREGISTER_BROKER: takes(UnregisterBrokerRequest, handle_unregister_broker),
}


class EnvelopeBroker(ControllerBroker, Protocol):
    """The parts of a broker of a cluster that this module uses."""

    forwarder: Forwarder | None

    def serve(self, context: RequestContext, header: RequestHeader, frame: memoryview) -> Awaitable[Message]:
        """The answer to a request that came in an Envelope."""
        ...


async def handle_envelope(broker: EnvelopeBroker, context: RequestContext, request: EnvelopeRequest) -> EnvelopeResponse:
    """Envelope (api 58): a request that another broker forwarded."""
    assert broker.forwarder is not None, "served in a cluster only"
    return await broker.forwarder.handle_envelope(context, request, broker.serve)


BETWEEN_BROKERS: dict[int, Handler[EnvelopeBroker]] = {
    ApiKey.ALTER_PARTITION: takes(alter.AlterPartitionRequest, handle_alter_partition),
    ApiKey.ALLOCATE_PRODUCER_IDS: takes(AllocateProducerIdsRequest, handle_allocate_producer_ids),
    ApiKey.ENVELOPE: takes(EnvelopeRequest, handle_envelope),
}
