"""The table of APIs this broker serves: each family of `apis/` registers its handlers and hooks here.

Produce and Fetch have handlers that read the frame themselves. Every other request is decoded and given to its handler. `ServingBroker`
lists the parts of the broker that all handlers use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.server.apis import (
    acls,
    alter_log_dirs,
    api_versions,
    cluster,
    committed_offsets,
    configs,
    consumer_groups,
    controller,
    delete_records,
    describe_topic_partitions,
    groups,
    groups_admin,
    list_offsets,
    liveness,
    log_dirs,
    metadata,
    quorum,
    quotas,
    sasl,
    tokens,
    topics,
    transactions,
    transactions_admin,
    users,
)
from barnabas.server.apis.fetch import FetchingBroker, handle_fetch
from barnabas.server.apis.produce import ProducingBroker, handle_produce
from barnabas.server.guards.guard import GuardedBroker
from barnabas.server.handlers import Handler, Parts, TakeOver

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.server.connection import Connection
    from barnabas.server.old_requests import OldRequests


class ServingBroker(
    acls.AclBroker,
    alter_log_dirs.AlterLogDirsBroker,
    api_versions.ApiVersionsBroker,
    cluster.ClusterBroker,
    consumer_groups.ConsumerGroupBroker,
    delete_records.DeleteRecordsBroker,
    describe_topic_partitions.DescribeTopicPartitionsBroker,
    list_offsets.ListOffsetsBroker,
    log_dirs.LogDirsBroker,
    metadata.MetadataBroker,
    quorum.QuorumBroker,
    quotas.ClientQuotaBroker,
    tokens.TokenBroker,
    topics.TopicBroker,
    transactions.TransactionBroker,
    transactions_admin.TransactionsAdminBroker,
    users.UserBroker,
    configs.ConfigBroker,
    controller.EnvelopeBroker,
    liveness.LivenessBroker,
    FetchingBroker,
    ProducingBroker,
    GuardedBroker,
    groups.GroupBroker,
    Protocol,
):
    """The interface of the broker for the handlers of all APIs, and for the dispatcher."""

    old_requests: OldRequests

    @property
    def metadata(self) -> MetadataImage: ...


Hot = Callable[[ServingBroker, "Connection", memoryview, int, int, int], None]

# Handlers that read the frame themselves
HOT: dict[int, Hot] = {ApiKey.PRODUCE: handle_produce, ApiKey.FETCH: handle_fetch}
HANDLERS: dict[int, Handler[ServingBroker]] = {
    **acls.HANDLERS,
    **alter_log_dirs.HANDLERS,
    **api_versions.HANDLERS,
    **cluster.HANDLERS,
    **committed_offsets.HANDLERS,
    **configs.HANDLERS,
    **consumer_groups.HANDLERS,
    **controller.HANDLERS,
    **delete_records.HANDLERS,
    **describe_topic_partitions.HANDLERS,
    **groups.HANDLERS,
    **groups_admin.HANDLERS,
    **list_offsets.HANDLERS,
    **log_dirs.HANDLERS,
    **metadata.HANDLERS,
    **quorum.HANDLERS,
    **quotas.HANDLERS,
    **sasl.HANDLERS,
    **tokens.HANDLERS,
    **topics.HANDLERS,
    **transactions.HANDLERS,
    **transactions_admin.HANDLERS,
    **users.HANDLERS,
}
SERVED = frozenset(HOT) | frozenset(HANDLERS)
BETWEEN_BROKERS = frozenset({*controller.BETWEEN_BROKERS, *liveness.BETWEEN_BROKERS})  # served only in a cluster
HANDLERS.update(controller.BETWEEN_BROKERS)
HANDLERS.update(liveness.BETWEEN_BROKERS)
FIRST: dict[int, TakeOver[ServingBroker]] = {**sasl.FIRST, **liveness.FIRST}  # called before the request is decoded
AFTER: dict[int, Callable[[ServingBroker], None]] = {**transactions.AFTER}  # called when the request is answered
# This broker handles parts of these forwarded requests; every other forwarded request goes whole to the controller.
PARTS: dict[int, Parts[ServingBroker]] = {**configs.PARTS, **tokens.PARTS}
