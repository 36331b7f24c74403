"""The committed offsets of groups, requested as by consumers of transactions."""

from __future__ import annotations

from barnabas.client.administration import LAST_COMMIT_WITH_NAMES, coordinator_of
from barnabas.client.asynchronous import AsyncClient
from barnabas.client.operations import refresh
from barnabas.client.plans import Plan, call
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.testing.simulation.history import TopicPartition


async def committed_offset(client: AsyncClient, group: str, place: TopicPartition, *, stable: bool) -> int:
    """The committed offset of one partition, or -1 if there is none; sends one request.

    Args:
        stable: refuse an offset that an open transaction may still change (KIP-447).

    Raises:
        KafkaError: UNSTABLE_OFFSET_COMMIT, or an error of the coordinator.
        ClientError: no answer.
    """
    topic, index = place
    asked = OffsetFetchRequestTopics(name=topic, partition_indexes=[index])
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=[asked], member_epoch=-1)], require_stable=stable
    )

    def ask() -> Plan[int]:
        yield from refresh(client.config, client.cluster, [])
        node_id = yield from coordinator_of(client.config, group)
        response = yield from call(request, node_id, LAST_COMMIT_WITH_NAMES)
        (answer,) = response.groups
        (found,) = answer.topics[0].partitions if answer.topics else [answer]
        code = ErrorCode(answer.error_code or found.error_code)
        if code:
            raise KafkaError(code)
        return int(found.committed_offset)

    return await client.run(ask())
