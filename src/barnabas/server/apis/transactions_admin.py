"""Describes and lists transactions and producers: DescribeTransactions, ListTransactions, DescribeProducers.

See KIP-664, KIP-994 and KIP-1152.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.cluster.planning.topics import check_name
from barnabas.coordination.transactions.transaction import State, Transaction
from barnabas.errors import ErrorCode, InvariantViolated, KafkaError
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from barnabas.protocol.messages.list_transactions import TransactionState as ListedTransaction
from barnabas.server.apis.groups import error_of
from barnabas.server.handlers import Handler, takes

if TYPE_CHECKING:
    from barnabas.clock import Clock
    from barnabas.coordination.transactions.coordinator import TransactionCoordinator
    from barnabas.replication.hosted_partitions import HostedPartitions
    from barnabas.server.requests import RequestContext


class TransactionsAdminBroker(Protocol):
    """The parts of the broker that this module uses."""

    clock: Clock
    partitions: HostedPartitions
    transactions: TransactionCoordinator


async def describe(
    broker: TransactionsAdminBroker, context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    described = []
    for name in request.transactional_ids:
        try:
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            found = await broker.transactions.describe(name)
        except (KafkaError, InvariantViolated) as error:
            described.append(TransactionState(transactional_id=name, error_code=error_of(error)))
        else:
            described.append(_described(found))
    return DescribeTransactionsResponse(transaction_states=described)


def _described(found: Transaction) -> TransactionState:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(found.partitions):
        topics.setdefault(topic, []).append(index)
    return TransactionState(
        transactional_id=found.transactional_id,
        transaction_state=found.state.title,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[TopicData(topic=topic, partitions=partitions) for topic, partitions in topics.items()],
    )


async def list_transactions(
    broker: TransactionsAdminBroker, context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    titles = {state.title for state in State}
    unknown = [each for each in request.state_filters if each not in titles]
    try:
        listed = await broker.transactions.list_transactions(_filter(request, broker.clock.now_ms()))
    except (KafkaError, InvariantViolated) as error:
        return ListTransactionsResponse(error_code=error_of(error))
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=_listed(listed))


def _filter(request: ListTransactionsRequest, now_ms: int) -> Callable[[Transaction], bool]:
    states, producer_ids = set(request.state_filters), set(request.producer_id_filters)
    is_named = _matcher_of(request.transactional_id_pattern) if request.transactional_id_pattern else None
    return lambda found: (
        (not states or found.state.title in states)
        and (not producer_ids or found.producer_id in producer_ids)
        and (request.duration_filter < 0 or now_ms - found.start_ms > request.duration_filter)
        and (is_named is None or is_named(found.transactional_id))
    )


def _matcher_of(pattern: str) -> Callable[[str], bool]:
    """The same as `patterns.matcher`; the first call loads the library of patterns."""
    from barnabas.server.patterns import matcher

    return matcher(pattern)


def _listed(found: Sequence[Transaction]) -> list[ListedTransaction]:
    return [
        ListedTransaction(
            transactional_id=each.transactional_id, producer_id=each.producer_id, transaction_state=each.state.title
        )
        for each in found
    ]


def handle_describe_producers(
    broker: TransactionsAdminBroker, _context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    topics = [
        TopicResponse(name=topic.name, partitions=[_producers(broker, topic.name, index) for index in topic.partition_indexes])
        for topic in request.topics
    ]
    return DescribeProducersResponse(topics=topics)


def _producers(broker: TransactionsAdminBroker, topic: str, index: int) -> PartitionResponse:
    try:
        check_name(topic)
        partition = broker.partitions.require(topic, index)  # a follower answers too: `find-hanging --broker-id` asks it
    except KafkaError as error:
        message = error.message or f"There is no partition {index} of topic {topic}."
        return PartitionResponse(partition_index=index, error_code=error.code, error_message=message)
    producers = [
        ProducerState(
            producer_id=state.producer_id,
            producer_epoch=state.epoch,
            last_sequence=state.last_sequence,
            last_timestamp=state.last_timestamp,
            coordinator_epoch=state.coordinator_epoch,
            current_txn_start_offset=state.current_txn_start_offset,
        )
        for state in partition.log.reader.producers()
    ]
    return PartitionResponse(partition_index=index, active_producers=producers)


HANDLERS: dict[int, Handler[TransactionsAdminBroker]] = {
    ApiKey.DESCRIBE_PRODUCERS: takes(DescribeProducersRequest, handle_describe_producers),
    ApiKey.DESCRIBE_TRANSACTIONS: takes(DescribeTransactionsRequest, describe),
    ApiKey.LIST_TRANSACTIONS: takes(ListTransactionsRequest, list_transactions),
}
