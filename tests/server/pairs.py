"""Requests that change something, and those that show it: to be sent in one write.

Every API that changes something is here, in `tests/differential/script/pipelined.py` beside Kafka's answers, or in `NOT_SHOWN`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import decode
from barnabas.protocol.messages import APIS, alter_configs, incremental_alter_configs
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from barnabas.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from barnabas.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.request_headers import has_flexible_response_header
from barnabas.server.answers import response_class
from tests.server.wire import Line, framed

TOPIC, ALLOW, READ, LITERAL, PRINCIPAL = 2, 3, 3, 3, "User:somebody"
KEYS = {prefix: key for key, (_, prefix, *_) in APIS.items()}
NOT_SHOWN = {  # reasons why no pair begins with the request
    "SaslHandshake": "tests/server/authentication",
    "SaslAuthenticate": "tests/server/authentication",
    "CreateDelegationToken": "tests/server/authentication/test_tokens.py",
    "RenewDelegationToken": "tests/server/authentication/test_tokens.py",
    "ExpireDelegationToken": "tests/server/authentication/test_tokens.py",
    "AlterReplicaLogDirs": "its answer says that the move has begun, not that it is done",
    "ElectLeaders": "on these brokers the leaders are the preferred ones",
    "AlterPartitionReassignments": "its answer says that the move has begun, not that it is done",
    "UpdateFeatures": "no level can be changed",
    "UnregisterBroker": "the brokers are all there",
    "EndTxn": "its answer does not wait for the markers, as Kafka's does not",
    "FindCoordinator": "makes internal topics, which are there already",
}


class Asked(NamedTuple):
    """A request and its version."""

    request: Message
    version: int

    @property
    def key(self) -> int:
        return KEYS[self.name]

    @property
    def name(self) -> str:
        return type(self.request).__name__.removesuffix("Request")


class Pair(NamedTuple):
    """Requests that go in one write, made for an unused name; `seen` looks at the last answer."""

    before: Sequence[Callable[[str], Asked]]  # sent and answered before the others
    together: Sequence[Callable[[str], Asked]]
    seen: Callable[[Any, str], bool]


def ask_together(line: Line, asked: Sequence[Asked]) -> list[Any]:
    """The answers to requests that go in one write."""
    line.socket.sendall(b"".join(framed((each.key, each.version), each.request, n) for n, each in enumerate(asked)))
    answers = []
    for each in asked:
        start = 5 if has_flexible_response_header(each.key, each.version) else 4
        answers.append(decode(response_class(each.key), each.version, line.receive(), start))
    return answers


def run(line: Line, pair: Pair, name: str) -> bool:
    """Whether the last request saw what the one before it had changed."""
    for make in pair.before:
        ask_together(line, [make(name)])
    return pair.seen(ask_together(line, [make(name) for make in pair.together])[-1], name)


def made(name: str) -> Asked:
    return Asked(
        CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=30_000), 7
    )


def gone(name: str) -> Asked:
    return Asked(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=30_000), 6)


def more(name: str) -> Asked:
    return Asked(
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name, count=3, assignments=None)], timeout_ms=30_000), 3
    )


def metadata(name: str) -> Asked:
    return Asked(MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False), 12)


def made_by_asking(name: str) -> Asked:
    return Asked(MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True), 12)


def all_topics(_: str) -> Asked:
    return Asked(MetadataRequest(topics=None), 12)


def partitions(name: str) -> Asked:
    return Asked(DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name)]), 0)


def fetched(name: str, max_wait_ms: int = 0) -> Asked:
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000, current_leader_epoch=-1)
    topics = [FetchTopic(topic=name, partitions=[place])]
    return Asked(FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, session_epoch=-1, topics=topics), 12)


def latest(name: str) -> Asked:
    partition = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=-1)
    return Asked(ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[partition])]), 7)


def settings(name: str) -> Asked:
    resource = DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=["retention.ms"])
    return Asked(DescribeConfigsRequest(resources=[resource]), 4)


def changed(name: str) -> Asked:
    change = incremental_alter_configs.AlterableConfig(name="retention.ms", config_operation=0, value="3600001")
    resource = incremental_alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=[change])
    return Asked(incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource]), 1)


def altered(name: str) -> Asked:
    change = alter_configs.AlterableConfig(name="retention.ms", value="3600001")
    resource = alter_configs.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=[change])
    return Asked(alter_configs.AlterConfigsRequest(resources=[resource]), 2)


def of_group_changed(name: str) -> Asked:
    change = incremental_alter_configs.AlterableConfig(name="consumer.session.timeout.ms", config_operation=0, value="46000")
    resource = incremental_alter_configs.AlterConfigsResource(resource_type=32, resource_name=name, configs=[change])
    return Asked(incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource]), 1)


def resources(_: str) -> Asked:
    return Asked(ListConfigResourcesRequest(resource_types=[32]), 1)


def allowed(name: str) -> Asked:
    binding = AclCreation(
        resource_type=TOPIC,
        resource_name=name,
        resource_pattern_type=LITERAL,
        principal=PRINCIPAL,
        host="*",
        operation=READ,
        permission_type=ALLOW,
    )
    return Asked(CreateAclsRequest(creations=[binding]), 3)


def not_allowed(name: str) -> Asked:
    binding = DeleteAclsFilter(
        resource_type_filter=TOPIC,
        resource_name_filter=name,
        pattern_type_filter=LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    return Asked(DeleteAclsRequest(filters=[binding]), 3)


def bindings(name: str) -> Asked:
    request = DescribeAclsRequest(
        resource_type_filter=TOPIC,
        resource_name_filter=name,
        pattern_type_filter=LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    return Asked(request, 3)


def quota_set(name: str) -> Asked:
    entry = RequestEntryData(
        entity=[RequestEntityData(entity_type="user", entity_name=name)], ops=[OpData(key="producer_byte_rate", value=1e9)]
    )
    return Asked(AlterClientQuotasRequest(entries=[entry]), 1)


def quotas(name: str) -> Asked:
    return Asked(DescribeClientQuotasRequest(components=[ComponentData(entity_type="user", match_type=0, match=name)]), 1)


def password_set(name: str) -> Asked:
    upsertion = ScramCredentialUpsertion(name=name, mechanism=1, iterations=4096, salt=b"salt", salted_password=b"p" * 32)
    return Asked(AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0)


def users(name: str) -> Asked:
    return Asked(DescribeUserScramCredentialsRequest(users=[UserName(name=name)]), 0)


def _is_there(answer: Any, name: str) -> bool:
    return any(topic.name == name and not topic.error_code for topic in answer.topics)


def _is_not_there(answer: Any, name: str) -> bool:
    return not _is_there(answer, name)


def _has_three(answer: Any, _: str) -> bool:
    return len(answer.topics[0].partitions) == 3


def _can_be_read(answer: Any, _: str) -> bool:
    return bool(answer.responses[0].partitions[0].error_code == 0)


def _is_set(answer: Any, _: str) -> bool:
    return [each.value for each in answer.results[0].configs] == ["3600001"]


PAIRS = {
    "CreateTopics, Metadata": Pair([], [made, metadata], _is_there),
    "CreateTopics, Metadata of all": Pair([], [made, all_topics], _is_there),
    "CreateTopics, DescribeTopicPartitions": Pair([], [made, partitions], _is_there),
    "CreateTopics, DescribeConfigs": Pair([], [made, settings], lambda answer, _: answer.results[0].error_code == 0),
    "CreateTopics, IncrementalAlterConfigs": Pair([], [made, changed], lambda answer, _: answer.responses[0].error_code == 0),
    "CreateTopics, CreatePartitions, Metadata": Pair([], [made, more, metadata], _has_three),
    "CreatePartitions, Metadata": Pair([made], [more, metadata], _has_three),
    "CreatePartitions, DescribeTopicPartitions": Pair([made], [more, partitions], _has_three),
    "DeleteTopics, Metadata": Pair([made], [gone, metadata], _is_not_there),
    "DeleteTopics, Metadata of all": Pair([made], [gone, all_topics], _is_not_there),
    "DeleteTopics, DescribeTopicPartitions": Pair([made], [gone, partitions], _is_not_there),
    "DeleteTopics, DescribeConfigs": Pair([made], [gone, settings], lambda answer, _: answer.results[0].error_code != 0),
    "DeleteTopics, CreateTopics, Metadata": Pair([made], [gone, made, metadata], _is_there),
    "Metadata that makes a topic, DescribeTopicPartitions": Pair([], [made_by_asking, partitions], _is_there),
    "IncrementalAlterConfigs, DescribeConfigs": Pair([made], [changed, settings], _is_set),
    "IncrementalAlterConfigs, ListConfigResources": Pair(
        [], [of_group_changed, resources], lambda answer, name: name in {r.resource_name for r in answer.config_resources}
    ),
    "AlterConfigs, DescribeConfigs": Pair([made], [altered, settings], _is_set),
    "CreateAcls, DescribeAcls": Pair([], [allowed, bindings], lambda answer, _: len(answer.resources) == 1),
    "DeleteAcls, DescribeAcls": Pair([allowed], [not_allowed, bindings], lambda answer, _: not answer.resources),
    "AlterClientQuotas, DescribeClientQuotas": Pair([], [quota_set, quotas], lambda answer, _: len(answer.entries) == 1),
    "AlterUserScramCredentials, DescribeUserScramCredentials": Pair(
        [], [password_set, users], lambda answer, _: answer.results[0].error_code == 0
    ),
}
ON_ITS_LEADER = {"CreateTopics, Fetch": Pair([], [made, fetched], _can_be_read)}  # in a cluster, the leader may be another broker
