"""Producer ids and transactions, for clients and other brokers.

Rules
  1. The version of a request shows that a client has transactions version 2: EndTxn 5, Produce 12, TxnOffsetCommit 5 (KIP-890).
  2. Older clients do not know PRODUCER_FENCED, so they get INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from barnabas.cluster.metadata.image import OFFSETS_TOPIC
from barnabas.coordination.interfaces import EndMarker
from barnabas.coordination.result import Producer
from barnabas.coordination.transactions.coordinator import Pending
from barnabas.coordination.transactions.data_types import InitRequest
from barnabas.coordination.transactions.transaction import NOBODY, Owner, TopicPartition
from barnabas.errors import ErrorCode, InvariantViolated, KafkaError
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.server.apis.groups import error_of
from barnabas.server.handlers import Handler, takes
from barnabas.server.transactions.marker_sender import MarkerServices, begin_marker, marked

if TYPE_CHECKING:
    from barnabas.cluster.membership.member import Member
    from barnabas.cluster.membership.standalone_controller import StandaloneController
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.coordination.group_coordinator import GroupCoordinator
    from barnabas.coordination.transactions.coordinator import TransactionCoordinator
    from barnabas.replication.hosted_partitions import HostedPartitions
    from barnabas.server.requests import RequestContext
    from barnabas.server.transactions.add_partitions_to_txn import AddPartitionsToTxn

Codes = dict[TopicPartition, ErrorCode]
NO_PRODUCER_ID, NO_EPOCH = -1, -1
FENCED_FROM: dict[int, int] = {  # first versions with PRODUCER_FENCED
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 2,
    ApiKey.ADD_OFFSETS_TO_TXN: 2,
    ApiKey.END_TXN: 2,
}
BATCHED_FROM_VERSION = 4  # of AddPartitionsToTxn
ABORTABLE_FROM_VERSION = 4  # of TxnOffsetCommit
SECOND_VERSION_END, SECOND_VERSION_COMMIT = 5, 5  # of EndTxn and TxnOffsetCommit, for clients of transactions version 2


class TransactionBroker(MarkerServices, Protocol):
    """The parts of the broker that this module uses."""

    add_partitions_to_txn: AddPartitionsToTxn
    controller: StandaloneController | Member
    groups: GroupCoordinator
    partitions: HostedPartitions
    transactions: TransactionCoordinator

    @property
    def metadata(self) -> MetadataImage: ...


def _code(context: RequestContext, error: KafkaError | InvariantViolated) -> ErrorCode:
    code = error_of(error)
    if code is ErrorCode.PRODUCER_FENCED and context.api_version < FENCED_FROM.get(context.api_key, 0):
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


# -- InitProducerId ---------------------------------------------------------------------------------------------------------


async def init_producer_id(
    broker: TransactionBroker, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """InitProducerId (api 22): an idempotent producer always gets a new id; for a transactional producer the coordinator decides."""
    try:
        if (request.producer_id != NO_PRODUCER_ID) != (request.producer_epoch != NO_EPOCH):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if request.transactional_id is None:
            return InitProducerIdResponse(producer_id=await broker.controller.next_producer_id(), producer_epoch=0)
        if not request.transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        has_id = request.producer_id != NO_PRODUCER_ID
        asked = InitRequest(
            request.transactional_id,
            request.transaction_timeout_ms,
            Owner(request.producer_id, request.producer_epoch) if has_id else NOBODY,
            request.enable2_pc,
            request.keep_prepared_txn,
        )
        found = await broker.transactions.init(asked)
    except (KafkaError, InvariantViolated) as error:
        code = _code(context, error)
        return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)
    return InitProducerIdResponse(
        producer_id=found.owner.producer_id,
        producer_epoch=found.owner.epoch,
        ongoing_txn_producer_id=found.ongoing.producer_id,
        ongoing_txn_producer_epoch=found.ongoing.epoch,
    )


# -- partitions and offsets of a transaction --------------------------------------------------------------------------------


def add_partitions(
    broker: TransactionBroker, context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse | Awaitable[AddPartitionsToTxnResponse]:
    if context.api_version >= BATCHED_FROM_VERSION:
        return _add_all(broker, context, request)
    asked = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    if _is_added_at_once(broker, asked):
        return _answer_to_one(asked, dict.fromkeys(_partitions_of(asked), ErrorCode.NONE))
    return _add_one(broker, context, asked)


async def _add_all(
    broker: TransactionBroker, context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    results = []
    for asked in request.transactions:
        codes = await _add(broker, context, asked)
        topics = [_added(topic, codes) for topic in asked.topics]
        results.append(AddPartitionsToTxnResult(transactional_id=asked.transactional_id, topic_results=topics))
    return AddPartitionsToTxnResponse(results_by_transaction=results)


async def _add_one(
    broker: TransactionBroker, context: RequestContext, asked: AddPartitionsToTxnTransaction
) -> AddPartitionsToTxnResponse:
    return _answer_to_one(asked, await _add(broker, context, asked))


def _answer_to_one(asked: AddPartitionsToTxnTransaction, codes: Codes) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[_added(topic, codes) for topic in asked.topics])


def _partitions_of(asked: AddPartitionsToTxnTransaction) -> list[TopicPartition]:
    return [(topic.name, index) for topic in asked.topics for index in topic.partitions]


def _is_added_at_once(broker: TransactionBroker, asked: AddPartitionsToTxnTransaction) -> bool:
    """Whether the partitions joined the transaction without waiting. `_add` handles the cases that must wait or that fail."""
    partitions, metadata = _partitions_of(asked), broker.metadata
    if any(metadata.partition(topic, index) is None for topic, index in partitions):
        return False
    owner = Owner(asked.producer_id, asked.producer_epoch)
    try:
        return broker.transactions.add_at_once(asked.transactional_id, owner, partitions, 0)
    except (KafkaError, InvariantViolated):
        return False  # nothing has changed: `_add` meets the same error and answers it


async def _add(broker: TransactionBroker, context: RequestContext, asked: AddPartitionsToTxnTransaction) -> Codes:
    partitions = _partitions_of(asked)
    owner = Owner(asked.producer_id, asked.producer_epoch)
    unknown = {each for each in partitions if broker.metadata.partition(*each) is None}
    if unknown:  # all partitions or none
        refused, rest = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
        return {each: refused if each in unknown else rest for each in partitions}
    try:
        if asked.verify_only:
            return await broker.transactions.verify(asked.transactional_id, owner, partitions)
        version = 2 if context.api_version >= BATCHED_FROM_VERSION else 0
        await broker.transactions.add(asked.transactional_id, owner, partitions, version)
    except (KafkaError, InvariantViolated) as error:
        return dict.fromkeys(partitions, _code(context, error))
    return dict.fromkeys(partitions, ErrorCode.NONE)


def _added(topic: AddPartitionsToTxnTopic, codes: Codes) -> AddPartitionsToTxnTopicResult:
    results = [
        AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=codes[topic.name, index])
        for index in topic.partitions
    ]
    return AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=results)


async def add_offsets(
    broker: TransactionBroker, context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    """AddOffsetsToTxn (api 25): adds the offsets partition of a group to the transaction."""
    owner = Owner(request.producer_id, request.producer_epoch)
    try:
        await broker.groups.prepare()
        place = OFFSETS_TOPIC, broker.groups.partition_of(request.group_id)
        await broker.transactions.add(request.transactional_id, owner, [place], 0)
    except (KafkaError, InvariantViolated) as error:
        return AddOffsetsToTxnResponse(error_code=_code(context, error))
    return AddOffsetsToTxnResponse()


async def commit_offsets(
    broker: TransactionBroker, context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    """TxnOffsetCommit (api 28): writes offsets that take effect when the transaction commits."""
    refused: list[TxnOffsetCommitResponseTopic] = []
    for topic in request.topics:
        count = broker.metadata.partition_count(topic.name)
        missing = [p.partition_index for p in topic.partitions if not 0 <= p.partition_index < count]
        if missing:
            refused.append(_uncommitted(topic.name, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            topic.partitions = [p for p in topic.partitions if 0 <= p.partition_index < count]
    request.topics = [topic for topic in request.topics if topic.partitions]
    if not request.topics and refused:
        return TxnOffsetCommitResponse(topics=refused)
    try:
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        await _join_offsets(broker, context, request)
        response = await broker.groups.commit_offsets_in_transaction(request)
    except (KafkaError, InvariantViolated) as error:
        code = _code(context, error)
        topics = [_uncommitted(each.name, [p.partition_index for p in each.partitions], code) for each in request.topics]
        response = TxnOffsetCommitResponse(topics=topics)
    response.topics = [*refused, *response.topics]
    return response


async def _join_offsets(broker: TransactionBroker, context: RequestContext, request: TxnOffsetCommitRequest) -> None:
    await broker.groups.prepare()
    partition = broker.partitions.get(OFFSETS_TOPIC, broker.groups.partition_of(request.group_id))
    if partition is None or not partition.is_leader:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)
    owner = Owner(request.producer_id, request.producer_epoch)
    if partition.log.reader.is_in_transaction(*owner):
        return
    adds, knows = context.api_version >= SECOND_VERSION_COMMIT, context.api_version >= ABORTABLE_FROM_VERSION
    told = await broker.add_partitions_to_txn.join(request.transactional_id, owner, [partition], adds=adds, knows_abortable=knows)
    (code,) = told.values()
    if code is ErrorCode.NOT_ENOUGH_REPLICAS:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)  # clients of groups retry after this error
    if code:
        raise KafkaError(code)


def _uncommitted(name: str, partitions: Iterable[int], code: ErrorCode) -> TxnOffsetCommitResponseTopic:
    answers = [TxnOffsetCommitResponsePartition(partition_index=index, error_code=code) for index in partitions]
    return TxnOffsetCommitResponseTopic(name=name, partitions=answers)


# -- the end ----------------------------------------------------------------------------------------------------------------


def end(broker: TransactionBroker, context: RequestContext, request: EndTxnRequest) -> EndTxnResponse | Awaitable[EndTxnResponse]:
    """EndTxn (api 26); `AFTER` writes the markers after the answer."""
    version = 2 if context.api_version >= SECOND_VERSION_END else 0
    owner = Owner(request.producer_id, request.producer_epoch)
    try:
        following = broker.transactions.end(request.transactional_id, owner, commit=request.committed, client_version=version)
    except (KafkaError, InvariantViolated) as error:
        return _not_ended(context, error)
    return _ended(following) if isinstance(following, Owner) else _end_later(context, following)


async def _end_later(context: RequestContext, pending: Pending) -> EndTxnResponse:
    try:
        return _ended(await pending())
    except (KafkaError, InvariantViolated) as error:
        return _not_ended(context, error)


def _ended(following: Owner) -> EndTxnResponse:
    return EndTxnResponse(producer_id=following.producer_id, producer_epoch=following.epoch)


def _not_ended(context: RequestContext, error: KafkaError | InvariantViolated) -> EndTxnResponse:
    return EndTxnResponse(error_code=_code(context, error), producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)


async def write_markers(
    broker: TransactionBroker, context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    """WriteTxnMarkers (api 27): writes the ends of transactions that another broker has decided."""
    return WriteTxnMarkersResponse(markers=await asyncio.gather(*(_write(broker, marker) for marker in request.markers)))


async def _write(broker: TransactionBroker, marker: WritableTxnMarker) -> WritableTxnMarkerResult:
    producer = Producer(marker.producer_id, marker.producer_epoch)
    ending = EndMarker(producer, marker.transaction_result, marker.coordinator_epoch, marker.transaction_version)
    topics = []
    for topic in marker.topics:
        begun = [begin_marker(broker, broker.groups, topic.name, index, ending) for index in topic.partition_indexes]
        codes = [await marked(each) for each in begun]
        told = [
            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
            for index, code in zip(topic.partition_indexes, codes, strict=True)
        ]
        topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=told))
    return WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)


HANDLERS: dict[int, Handler[TransactionBroker]] = {
    ApiKey.INIT_PRODUCER_ID: takes(InitProducerIdRequest, init_producer_id),
    ApiKey.ADD_PARTITIONS_TO_TXN: takes(AddPartitionsToTxnRequest, add_partitions),
    ApiKey.ADD_OFFSETS_TO_TXN: takes(AddOffsetsToTxnRequest, add_offsets),
    ApiKey.END_TXN: takes(EndTxnRequest, end),
    ApiKey.WRITE_TXN_MARKERS: takes(WriteTxnMarkersRequest, write_markers),
    ApiKey.TXN_OFFSET_COMMIT: takes(TxnOffsetCommitRequest, commit_offsets),
}


def _write_markers_of_the_end(broker: TransactionBroker) -> None:
    broker.transactions.follow_up()


# Called when the request is answered: a producer that ended a transaction continues while its markers are written
AFTER: dict[int, Callable[[TransactionBroker], None]] = {ApiKey.END_TXN: _write_markers_of_the_end}
