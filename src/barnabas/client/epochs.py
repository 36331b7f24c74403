"""The ends of leader epochs as a plan: by them a reader finds out whether an unclean election has replaced records that it knew."""

from __future__ import annotations

from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError, PartitionError
from barnabas.client.operations import known, leading
from barnabas.client.plans import Call, Plan, retrying
from barnabas.client.results import TopicPartition
from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


def end_of_epoch(config: ClientConfig, cluster: Cluster, place: TopicPartition, epoch: int) -> Plan[int]:
    """The offset behind the last record of a leader epoch, or of the last earlier one that the log has; -1 if it has none."""
    topic, partition = place

    def attempt() -> Plan[int]:
        yield from known(config, cluster, [place])
        _, leader = leading(cluster, topic, partition)
        item = OffsetForLeaderPartition(partition=partition, current_leader_epoch=leader.leader_epoch, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[item])])
        (answer,) = yield [Call(request, leader.leader)]
        if isinstance(answer, ClientError):
            cluster.forget(topic)
            raise answer
        (found,) = answer.topics[0].partitions
        if found.error_code:
            cluster.forget(topic)
            raise PartitionError(ErrorCode(found.error_code), topic, partition)
        end: int = found.end_offset
        return end

    return (yield from retrying(config, f"the end of epoch {epoch} of {topic}-{partition}", attempt))
