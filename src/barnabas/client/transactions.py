"""Producer ids and transactions as plans: initialising a producer, ending transactions, listing them.

Rules
  1. A request goes to the coordinator of its transactional id. If an error means that the coordinator has moved, the retry
     finds it again. Requests about many ids are sent together.
  2. Transient errors are retried (a coordinator is loading, an end is in progress). Every other error code goes to the caller:
     the code says who owns the id, and the caller decides.

Sources: KIP-98, KIP-890 (transactions of version 2), KIP-939 (two-phase commit).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from msgspec import Struct

from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError, ResourceError, UnsupportedRequest
from barnabas.client.operations import refresh
from barnabas.client.plans import Call, Now, Plan, call, retrying
from barnabas.client.results import TopicPartition
from barnabas.error_codes import ErrorCode
from barnabas.protocol.base_message import Message
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.partitions import by_topic

TRANSACTION_COORDINATOR = 1  # key type in FindCoordinator
FIRST_RETRY_MS = 5  # wait before the first retry; ending a transaction takes a few milliseconds
FIRST_TWO_PHASE = 6  # first version of InitProducerId with two-phase commit
LAST_SINGLE_ADD = 3  # last version of AddPartitionsToTxn for clients; only brokers use later versions
LAST_FIRST_VERSION_END, LAST_FIRST_VERSION_PRODUCE = (
    4,
    11,
)  # of EndTxn and Produce; later versions mean transactions of version 2
MOST_COORDINATORS = 10_000  # entries in a client's cache; ids that are used only once would make it grow without a bound
MOVED = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}


class Owner(NamedTuple):
    """The producer id and epoch that may write."""

    producer_id: int
    epoch: int


class Initialised(Struct, frozen=True):
    """The new owner of a transactional id, and the owner of the open transaction that was kept (KIP-939), if there is one."""

    owner: Owner
    ongoing: Owner | None = None


class DescribedTransaction(Struct, frozen=True):
    """A transactional id at its coordinator; `state` is Kafka's name, such as Ongoing."""

    transactional_id: str
    state: str
    owner: Owner


def init_producer_id(
    config: ClientConfig,
    cluster: Cluster,
    transactional_id: str | None,
    *,
    timeout_ms: int = 60_000,
    expected: Owner | None = None,
    two_phase: bool = False,
    keep_prepared: bool = False,
) -> Plan[Initialised]:
    """Become the owner of an id. Its open transaction is aborted, or kept with `keep_prepared`.

    Raises:
        ResourceError: the coordinator's error; PRODUCER_FENCED if `expected` is not the owner any more.
    """
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=expected.producer_id if expected else -1,
        producer_epoch=expected.epoch if expected else -1,
        enable2_pc=two_phase,
        keep_prepared_txn=keep_prepared,
    )
    if transactional_id is None:

        def attempt() -> Plan[Any]:
            response = yield from call(request)
            _raise_final(response.error_code, "a producer id")
            return response

        response = yield from retrying(config, "producer id", attempt)
    else:
        name = transactional_id
        at_least = (
            FIRST_TWO_PHASE if two_phase else None
        )  # an older version would ignore the field and abort the prepared transaction
        answers = yield from _of_coordinators(
            config, cluster, [name], lambda _: request, lambda _, r: r.error_code, at_least=at_least
        )
        response = answers[name]
        if response.error_code:
            raise ResourceError(ErrorCode(response.error_code), f"transactional id {name}")
    ongoing = Owner(response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch)
    return Initialised(Owner(response.producer_id, response.producer_epoch), ongoing if ongoing.producer_id >= 0 else None)


def end_transactions(
    config: ClientConfig, cluster: Cluster, owners: Mapping[str, Owner], *, commit: bool, second_version: bool
) -> Plan[dict[str, Owner | ErrorCode]]:
    """End the transaction of each id; returns for each the new owner, or an error code that is not retriable."""

    def request(name: str) -> Message:
        owner = owners[name]
        return EndTxnRequest(transactional_id=name, producer_id=owner.producer_id, producer_epoch=owner.epoch, committed=commit)

    at_most = None if second_version else LAST_FIRST_VERSION_END
    answers = yield from _of_coordinators(config, cluster, owners, request, lambda _, r: r.error_code, at_most)
    ended: dict[str, Owner | ErrorCode] = {}
    for name, response in answers.items():
        follows = Owner(response.producer_id, response.producer_epoch)
        ended[name] = ErrorCode(response.error_code) if response.error_code else follows if second_version else owners[name]
    return ended


def add_partitions(
    config: ClientConfig, cluster: Cluster, transactional_id: str, owner: Owner, partitions: Iterable[TopicPartition]
) -> Plan[None]:
    """Add partitions to a transaction of version 1 before it writes to them."""
    topics = by_topic(partitions)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=owner.producer_id,
        v3_and_below_producer_epoch=owner.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=items) for name, items in topics.items()],
    )

    def code_of(_: str, response: Any) -> int:
        codes = [p.partition_error_code for t in response.results_by_topic_v3_and_below for p in t.results_by_partition]
        told = [code for code in codes if code not in (ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED)]
        return int(told[0]) if told else 0

    name = transactional_id
    answers = yield from _of_coordinators(config, cluster, [name], lambda _: request, code_of, LAST_SINGLE_ADD)
    if code := code_of(name, answers[name]):
        raise ResourceError(ErrorCode(code), f"transactional id {transactional_id}")


def describe_transactions(config: ClientConfig, cluster: Cluster, ids: Iterable[str]) -> Plan[dict[str, DescribedTransaction]]:
    """The transactional ids in `ids` that their coordinators know."""

    def code_of(_: str, response: Any) -> int:
        return int(response.transaction_states[0].error_code)

    answers = yield from _of_coordinators(
        config, cluster, list(ids), lambda name: DescribeTransactionsRequest(transactional_ids=[name]), code_of
    )
    found = {}
    for name, response in answers.items():
        (item,) = response.transaction_states
        if item.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            continue
        if item.error_code:
            raise ResourceError(ErrorCode(item.error_code), f"transactional id {name}")
        found[name] = DescribedTransaction(name, item.transaction_state, Owner(item.producer_id, item.producer_epoch))
    return found


def list_transactions(
    config: ClientConfig, cluster: Cluster, states: Sequence[str], pattern: str | None = None
) -> Plan[dict[str, str]]:
    """The ids in one of `states` with their state, from every broker.

    Args:
        pattern: a regular expression for whole ids; brokers before Kafka 4.1 ignore it and return all ids.
    """
    request = ListTransactionsRequest(state_filters=states, transactional_id_pattern=pattern)

    def attempt() -> Plan[dict[str, str]]:
        known = list(cluster.brokers)  # request both together, because other brokers are rare
        metadata, *answers = yield [Call(MetadataRequest(topics=[])), *(Call(request, node_id) for node_id in known)]
        if isinstance(metadata, ClientError):
            raise metadata
        cluster.receive_metadata(metadata, (yield Now()))
        others = [node_id for node_id in cluster.brokers if node_id not in known]
        if others:
            answers += yield [Call(request, node_id) for node_id in others]
        found = {}
        for node_id, answer in zip(known + others, answers, strict=True):
            if node_id not in cluster.brokers:  # the broker has left the cluster
                continue
            if isinstance(answer, ClientError):
                raise answer
            _raise_final(answer.error_code, "the list of transactions")
            found.update({item.transactional_id: item.transaction_state for item in answer.transaction_states})
        return found

    return (yield from retrying(_impatient(config), "list of transactions", attempt))


def _of_coordinators(
    config: ClientConfig,
    cluster: Cluster,
    ids: Iterable[str],
    request_for: Callable[[str], Message],
    code_of: Callable[[str, Any], int],
    at_most: int | None = None,
    at_least: int | None = None,
) -> Plan[dict[str, Any]]:
    """Send a request for each id to its coordinator, all at the same time, and retry after transient errors. Returns the last
    response for each id."""
    wanted = list(ids)
    answers: dict[str, Any] = {}

    def attempt() -> Plan[None]:
        left = [name for name in wanted if name not in answers]
        yield from _find_coordinators(config, cluster, left)
        came = yield [Call(request_for(name), cluster.coordinators[name], at_most, at_least) for name in left]
        error: Exception | None = None
        for name, answer in zip(left, came, strict=True):
            if isinstance(answer, UnsupportedRequest):
                raise answer
            if isinstance(answer, ClientError):
                cluster.coordinators.pop(name, None)
                error = answer
                continue
            code = ErrorCode(code_of(name, answer))
            if code in MOVED:
                cluster.coordinators.pop(name, None)
            if code.retriable:
                error = ResourceError(code, f"transactional id {name}")
            else:
                answers[name] = answer
        if error is not None:
            raise error

    if wanted:
        yield from retrying(_impatient(config), "answer of the transaction coordinator", attempt)
    return answers


def _find_coordinators(config: ClientConfig, cluster: Cluster, ids: Sequence[str]) -> Plan[None]:
    missing = [name for name in ids if name not in cluster.coordinators]
    if not missing:
        return
    if len(cluster.coordinators) > MOST_COORDINATORS:
        cluster.coordinators.clear()
        missing = list(ids)
    yield from refresh(config, cluster, [])
    request = FindCoordinatorRequest(key=missing[0], key_type=TRANSACTION_COORDINATOR, coordinator_keys=missing)
    response = yield from call(request)
    for item in response.coordinators:
        _raise_final(item.error_code, f"transactional id {item.key}")
        cluster.coordinators[item.key] = item.node_id


def _raise_final(code: int, what: str) -> None:
    if code:
        raise ResourceError(ErrorCode(code), what)


def _impatient(config: ClientConfig) -> ClientConfig:
    return replace(config, retry_backoff_ms=min(FIRST_RETRY_MS, config.retry_backoff_ms))
