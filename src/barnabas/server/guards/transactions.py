"""Guards of producer ids and transactions."""

from __future__ import annotations

from typing import Any

from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.security.acls import Operation, ResourceType
from barnabas.server.apis.transactions import BATCHED_FROM_VERSION, NO_EPOCH, NO_PRODUCER_ID
from barnabas.server.guards.guard import Answer, Asked, GoOn, Guard, itself, on_cluster, split, then

REFUSED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
GROUP_REFUSED, TOPIC_REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED


def guard_init_producer_id(asked: Asked, request: InitProducerIdRequest, go_on: GoOn) -> Answer:
    """InitProducerId (api 22): a client that may write to any topic may also be an idempotent producer (KIP-679)."""
    access, name = asked.access, request.transactional_id
    if name is None:
        may_write = access.silent.allows_cluster(Operation.IDEMPOTENT_WRITE) or access.allows_anywhere(
            Operation.WRITE, ResourceType.TOPIC
        )
        code = None if may_write else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    else:
        wanted = (Operation.WRITE, Operation.TWO_PHASE_COMMIT) if request.enable2_pc else (Operation.WRITE,)
        code = None if all(access.allows_transaction(each, name) for each in wanted) else REFUSED
    if code is None:
        return go_on(request)
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)


def guard_add_partitions(asked: Asked, request: AddPartitionsToTxnRequest, go_on: GoOn) -> Answer:
    """AddPartitionsToTxn (api 24): from version 4 on brokers send it, earlier versions come from the producer. It adds all partitions or
    none.
    """
    if asked.version >= BATCHED_FROM_VERSION:
        if asked.access.allows_cluster(Operation.CLUSTER_ACTION):
            return go_on(request)
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    topics = request.v3_and_below_topics
    if not asked.access.allows_transaction(Operation.WRITE, request.v3_and_below_transactional_id):
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[_not_added(t, lambda *_: REFUSED) for t in topics])
    _, denied = split(topics, lambda name: asked.access.allows_topic(Operation.WRITE, name))
    if not denied:
        return go_on(request)
    names = {topic.name for topic in denied}

    def code_of(name: str, index: int) -> ErrorCode:
        if name in names:
            return TOPIC_REFUSED
        if asked.broker.metadata.partition(name, index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.OPERATION_NOT_ATTEMPTED

    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[_not_added(topic, code_of) for topic in topics])


def _not_added(topic: Any, code_of: Any) -> AddPartitionsToTxnTopicResult:
    results = [
        AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code_of(topic.name, index))
        for index in topic.partitions
    ]
    return AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=results)


def guard_add_offsets(asked: Asked, request: AddOffsetsToTxnRequest, go_on: GoOn) -> Answer:
    """AddOffsetsToTxn (api 25)."""
    if not asked.access.allows_transaction(Operation.WRITE, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=REFUSED)
    if not asked.access.allows_group(Operation.READ, request.group_id):
        return AddOffsetsToTxnResponse(error_code=GROUP_REFUSED)
    return go_on(request)


def guard_end(asked: Asked, request: EndTxnRequest, go_on: GoOn) -> Answer:
    """EndTxn (api 26)."""
    if asked.access.allows_transaction(Operation.WRITE, request.transactional_id):
        return go_on(request)
    return EndTxnResponse(error_code=REFUSED, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)


def _no_markers(request: WriteTxnMarkersRequest, code: ErrorCode) -> WriteTxnMarkersResponse:
    markers = []
    for marker in request.markers:
        topics = [
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(partition_index=index, error_code=code) for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ]
        markers.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
    return WriteTxnMarkersResponse(markers=markers)


def guard_offset_commit(asked: Asked, request: TxnOffsetCommitRequest, go_on: GoOn) -> Answer:
    """TxnOffsetCommit (api 28)."""
    access = asked.access
    if not access.allows_transaction(Operation.WRITE, request.transactional_id):
        return TxnOffsetCommitResponse(topics=[_uncommitted(topic, REFUSED) for topic in request.topics])
    if not access.allows_group(Operation.READ, request.group_id):
        return TxnOffsetCommitResponse(topics=[_uncommitted(topic, GROUP_REFUSED) for topic in request.topics])
    request.topics, denied = split(request.topics, lambda name: access.allows_topic(Operation.READ, name))
    refusals = [_uncommitted(topic, TOPIC_REFUSED) for topic in denied]
    if refusals and not request.topics:
        return TxnOffsetCommitResponse(topics=refusals)

    def add(response: TxnOffsetCommitResponse) -> None:
        response.topics = [*refusals, *response.topics]

    return then(go_on(request), add) if refusals else go_on(request)


def _uncommitted(topic: Any, code: ErrorCode) -> TxnOffsetCommitResponseTopic:
    answers = [TxnOffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code) for p in topic.partitions]
    return TxnOffsetCommitResponseTopic(name=topic.name, partitions=answers)


def guard_describe(asked: Asked, request: DescribeTransactionsRequest, go_on: GoOn) -> Answer:
    """DescribeTransactions (api 65): the answer omits topics that the client may not describe."""
    access = asked.access

    def may_describe(name: str) -> bool:
        return not name or access.allows_transaction(Operation.DESCRIBE, name)  # the handler refuses an empty name

    request.transactional_ids, denied = split(request.transactional_ids, may_describe, name_of=itself)

    def finish(response: DescribeTransactionsResponse) -> None:
        for state in response.transaction_states:
            state.topics = [topic for topic in state.topics if access.silent.allows_topic(Operation.DESCRIBE, topic.topic)]
        refusals = [TransactionState(transactional_id=name, error_code=REFUSED) for name in denied]
        response.transaction_states = [*response.transaction_states, *refusals]

    return then(go_on(request), finish)


def guard_list(asked: Asked, request: ListTransactionsRequest, go_on: GoOn) -> Answer:
    """ListTransactions (api 66): the transactions that the client may describe."""

    def finish(response: ListTransactionsResponse) -> None:
        response.transaction_states = [
            state
            for state in response.transaction_states
            if asked.access.silent.allows_transaction(Operation.DESCRIBE, state.transactional_id)
        ]

    return then(go_on(request), finish)


GUARDS: dict[int, Guard] = {
    ApiKey.INIT_PRODUCER_ID: guard_init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: guard_add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: guard_add_offsets,
    ApiKey.END_TXN: guard_end,
    ApiKey.WRITE_TXN_MARKERS: on_cluster((Operation.ALTER, Operation.CLUSTER_ACTION), _no_markers),
    ApiKey.TXN_OFFSET_COMMIT: guard_offset_commit,
    ApiKey.DESCRIBE_TRANSACTIONS: guard_describe,
    ApiKey.LIST_TRANSACTIONS: guard_list,
}
