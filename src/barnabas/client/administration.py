"""Requests that change or describe a cluster, as plans: topics, their configuration, deleted records, committed offsets.

Requests about topics go to the controller, requests about a group to its coordinator. If one has moved, the plans find it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError, PartitionError, ResourceError
from barnabas.client.operations import known, leading, refresh
from barnabas.client.plans import ANY_BROKER, Call, Plan, call, retrying
from barnabas.client.results import CommittedOffset, CreatedTopic, NewTopic, TopicPartition
from barnabas.error_codes import ErrorCode
from barnabas.protocol.base_message import Message
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from barnabas.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResource
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.partitions import by_topic
from barnabas.protocol.values import ResourceType

ANY = 1  # in a filter of bindings: any type, pattern, operation or permission
OF_TOPIC = 1  # a source of settings: the topic itself
LAST_COMMIT_WITH_NAMES = 9  # from version 10 on, OffsetCommit and OffsetFetch name topics by id


def to_controller(config: ClientConfig, cluster: Cluster, request: Message, what: str) -> Plan[Any]:
    """Send `request` to the controller; brokers in KRaft mode forward it, so any broker works if no controller is known."""

    def attempt() -> Plan[Any]:
        if not cluster.brokers:
            yield from refresh(config, cluster, [])
        node_id = cluster.controller_id if cluster.controller_id in cluster.brokers else ANY_BROKER
        try:
            response = yield from call(request, node_id)
        except ClientError:
            cluster.brokers = {}  # forget the brokers: another broker may be the controller now
            raise
        for item in getattr(response, "topics", None) or getattr(response, "responses", None) or ():
            if item.error_code == ErrorCode.NOT_CONTROLLER:
                cluster.brokers = {}
                raise ResourceError(ErrorCode.NOT_CONTROLLER, what)
        return response

    return (yield from retrying(config, what, attempt))


def create_topics(
    config: ClientConfig, cluster: Cluster, topics: Sequence[NewTopic], *, validate_only: bool = False
) -> Plan[list[CreatedTopic]]:
    """Create topics; raises ResourceError for the first that was refused (the others may have been created)."""
    items = [
        CreatableTopic(
            name=topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
        )
        for topic in topics
    ]
    request = CreateTopicsRequest(topics=items, timeout_ms=config.request_timeout_ms, validate_only=validate_only)
    response = yield from to_controller(config, cluster, request, "creation of topics")
    for item in response.topics:
        if item.error_code:
            raise ResourceError(ErrorCode(item.error_code), f"topic {item.name}", item.error_message)
    return [CreatedTopic(t.name, t.topic_id, t.num_partitions, t.replication_factor) for t in response.topics]


def create_partitions(config: ClientConfig, cluster: Cluster, topic: str, count: int) -> Plan[None]:
    """Increase the partitions of `topic` to `count`."""
    item = CreatePartitionsTopic(name=topic, count=count, assignments=None)
    request = CreatePartitionsRequest(topics=[item], timeout_ms=config.request_timeout_ms)
    response = yield from to_controller(config, cluster, request, "creation of partitions")
    cluster.forget(topic)
    for result in response.results:
        if result.error_code:
            raise ResourceError(ErrorCode(result.error_code), f"topic {topic}", result.error_message)


def delete_topics(config: ClientConfig, cluster: Cluster, names: Sequence[str]) -> Plan[None]:
    """Delete topics by name; raises ResourceError for the first that was refused."""
    request = DeleteTopicsRequest(
        topic_names=names, topics=[DeleteTopicState(name=name) for name in names], timeout_ms=config.request_timeout_ms
    )
    response = yield from to_controller(config, cluster, request, "deletion of topics")
    for name in names:
        cluster.forget(name)
    for item in response.responses:
        if item.error_code:
            raise ResourceError(ErrorCode(item.error_code), f"topic {item.name}", item.error_message)


def describe_topic_config(
    config: ClientConfig, cluster: Cluster, topic: str, *, only_own: bool = False
) -> Plan[dict[str, str | None]]:  # fmt: skip
    """The configuration of `topic`, by key.

    Args:
        only_own: whether defaults are left out, and what the brokers' settings give.
    """
    resource = DescribeConfigsResource(resource_type=ResourceType.TOPIC, resource_name=topic, configuration_keys=None)

    def attempt() -> Plan[dict[str, str | None]]:
        response = yield from call(DescribeConfigsRequest(resources=[resource]))
        (result,) = response.results
        if result.error_code:
            raise ResourceError(ErrorCode(result.error_code), f"topic {topic}", result.error_message)
        found = result.configs if not only_own else [item for item in result.configs if item.config_source == OF_TOPIC]
        return {item.name: item.value for item in found}

    return (yield from retrying(config, f"configuration of {topic}", attempt))


def describe_broker_config(config: ClientConfig, cluster: Cluster) -> Plan[dict[str, str | None]]:
    """The configuration of one broker, by key; None for a key whose value is secret."""

    def attempt() -> Plan[dict[str, str | None]]:
        if not cluster.brokers:
            yield from refresh(config, cluster, [])
        node_id = min(cluster.brokers)
        resource = DescribeConfigsResource(resource_type=ResourceType.BROKER, resource_name=str(node_id), configuration_keys=None)
        try:
            response = yield from call(DescribeConfigsRequest(resources=[resource]), node_id)
        except ClientError:
            cluster.brokers = {}  # forget the brokers: this one may be gone
            raise
        (result,) = response.results
        if result.error_code:
            raise ResourceError(ErrorCode(result.error_code), f"broker {node_id}", result.error_message)
        return {item.name: item.value for item in result.configs}

    return (yield from retrying(config, "configuration of a broker", attempt))


def describe_acls(config: ClientConfig) -> Plan[Sequence[DescribeAclsResource]]:
    """All bindings of the cluster's access control lists, by the pattern of their resources."""
    request = DescribeAclsRequest(
        resource_type_filter=ANY, resource_name_filter=None, pattern_type_filter=ANY, principal_filter=None, host_filter=None,
        operation=ANY, permission_type=ANY,
    )  # fmt: skip

    def attempt() -> Plan[Sequence[DescribeAclsResource]]:
        response = yield from call(request)
        if response.error_code:
            raise ResourceError(ErrorCode(response.error_code), "access control lists", response.error_message)
        found: Sequence[DescribeAclsResource] = response.resources
        return found

    return (yield from retrying(config, "access control lists", attempt))


def delete_records(config: ClientConfig, cluster: Cluster, before: Mapping[TopicPartition, int]) -> Plan[None]:
    """Delete the records before an offset of each partition (-1: all records)."""

    def attempt() -> Plan[None]:
        yield from known(config, cluster, before)
        calls = []
        for (topic, partition), offset in before.items():
            item = DeleteRecordsPartition(partition_index=partition, offset=offset)
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=topic, partitions=[item])], timeout_ms=config.request_timeout_ms
            )
            calls.append(Call(request, leading(cluster, topic, partition)[1].leader))
        answers = yield calls
        for (topic, partition), answer in zip(before, answers, strict=True):
            if isinstance(answer, ClientError):
                cluster.forget(topic)
                raise answer
            code = answer.topics[0].partitions[0].error_code
            if code:
                cluster.forget(topic)
                raise PartitionError(ErrorCode(code), topic, partition)

    yield from retrying(config, "deletion of records", attempt)


def coordinator_of(config: ClientConfig, group: str) -> Plan[int]:
    """The broker that keeps the offsets of `group`."""
    request = FindCoordinatorRequest(key=group, key_type=0, coordinator_keys=[group])
    response = yield from call(request)
    item = response.coordinators[0] if response.coordinators else response
    if item.error_code:
        raise ResourceError(ErrorCode(item.error_code), f"group {group}", item.error_message)
    return int(item.node_id)


def commit_offsets(
    config: ClientConfig, cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int],
    metadata: str | Mapping[TopicPartition, str] = "",
) -> Plan[None]:  # fmt: skip
    """Commit offsets for a group without members, so that lag tools see its progress.

    Args:
        metadata: of all partitions, or of each; one without has none.
    """
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        text = metadata if isinstance(metadata, str) else metadata.get((topic, partition), "")
        item = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=text
        )
        topics.setdefault(topic, []).append(item)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[OffsetCommitRequestTopic(name=name, partitions=items) for name, items in topics.items()],
    )

    def attempt() -> Plan[None]:
        yield from refresh(config, cluster, [])
        node_id = yield from coordinator_of(config, group)
        response = yield from call(request, node_id, LAST_COMMIT_WITH_NAMES)
        for topic in response.topics:
            for item in topic.partitions:
                if item.error_code:
                    raise PartitionError(ErrorCode(item.error_code), topic.name, item.partition_index)

    yield from retrying(config, f"commit of group {group}", attempt)


def committed_offsets(
    config: ClientConfig, cluster: Cluster, group: str, partitions: Iterable[TopicPartition]
) -> Plan[dict[TopicPartition, CommittedOffset]]:
    """The committed offset of `group` for each of `partitions`; -1 if it has none."""
    topics = by_topic(partitions)
    entries = [OffsetFetchRequestTopics(name=name, partition_indexes=items) for name, items in topics.items()]
    older = [OffsetFetchRequestTopic(name=name, partition_indexes=items) for name, items in topics.items()]
    request = OffsetFetchRequest(
        group_id=group, topics=older, groups=[OffsetFetchRequestGroup(group_id=group, topics=entries, member_epoch=-1)]
    )

    def attempt() -> Plan[dict[TopicPartition, CommittedOffset]]:
        yield from refresh(config, cluster, [])
        node_id = yield from coordinator_of(config, group)
        response = yield from call(request, node_id, LAST_COMMIT_WITH_NAMES)
        answer = response.groups[0] if response.groups else response
        if answer.error_code:
            raise ResourceError(ErrorCode(answer.error_code), f"group {group}")
        found = {}
        for topic in answer.topics:
            for item in topic.partitions:
                if item.error_code:
                    raise PartitionError(ErrorCode(item.error_code), topic.name, item.partition_index)
                found[topic.name, item.partition_index] = CommittedOffset(
                    item.committed_offset, item.metadata or "", item.committed_leader_epoch
                )
        return found

    return (yield from retrying(config, f"offsets of group {group}", attempt))
