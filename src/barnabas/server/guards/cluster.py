"""Guards of requests about the cluster as a whole: replicas, brokers, access control lists, quotas, users, tokens, and requests between
brokers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsResponse
from barnabas.protocol.messages.alter_client_quotas import AlterClientQuotasResponse, ResponseEntityData, ResponseEntryData
from barnabas.protocol.messages.alter_partition import AlterPartitionResponse
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatResponse
from barnabas.protocol.messages.create_acls import AclCreationResult, CreateAclsResponse
from barnabas.protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from barnabas.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsResponse
from barnabas.protocol.messages.describe_acls import DescribeAclsResponse
from barnabas.protocol.messages.describe_client_quotas import DescribeClientQuotasResponse
from barnabas.protocol.messages.describe_quorum import DescribeQuorumResponse
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from barnabas.protocol.messages.elect_leaders import ElectLeadersResponse, PartitionResult, ReplicaElectionResult
from barnabas.protocol.messages.envelope import EnvelopeResponse
from barnabas.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsResponse
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerResponse
from barnabas.protocol.messages.update_features import UpdateFeaturesResponse
from barnabas.security.acls import Operation, ResourceType
from barnabas.server.apis.tokens import may_ask
from barnabas.server.guards.guard import Answer, Asked, GoOn, Guard, on_cluster

MESSAGE = "Cluster authorization failed."


# -- access control lists ---------------------------------------------------------------------------------------------------


def _no_acls(_request: Any, code: ErrorCode) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=code, error_message=MESSAGE)


def _none_created(request: Any, code: ErrorCode) -> CreateAclsResponse:
    return CreateAclsResponse(results=[AclCreationResult(error_code=code, error_message=MESSAGE) for _ in request.creations])


def _none_deleted(request: Any, code: ErrorCode) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(error_code=code, error_message=MESSAGE) for _ in request.filters]
    )


# -- replicas ---------------------------------------------------------------------------------------------------------------


def _none_moved(request: Any, code: ErrorCode) -> AlterReplicaLogDirsResponse:
    by_topic: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for topic in (topic for directory in request.dirs for topic in directory.topics):
        answers = [AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code) for index in topic.partitions]
        by_topic.setdefault(topic.name, []).extend(answers)
    results = [AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions) for name, partitions in by_topic.items()]
    return AlterReplicaLogDirsResponse(results=results)


def _none_elected(request: Any, code: ErrorCode) -> ElectLeadersResponse:
    results = [
        ReplicaElectionResult(
            topic=topic.topic,
            partition_result=[
                PartitionResult(partition_id=index, error_code=code, error_message=MESSAGE) for index in topic.partitions
            ],
        )
        for topic in request.topic_partitions or ()
    ]
    return ElectLeadersResponse(error_code=code, replica_election_results=results)


def _none_reassigned(request: Any, code: ErrorCode) -> AlterPartitionReassignmentsResponse:
    responses = [
        ReassignableTopicResponse(
            name=topic.name,
            partitions=[
                ReassignablePartitionResponse(partition_index=p.partition_index, error_code=code, error_message=MESSAGE)
                for p in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=code,
        error_message=MESSAGE,
        responses=responses,
    )


def _none_listed(_request: Any, code: ErrorCode) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=code, error_message=MESSAGE)


# -- quotas and users -------------------------------------------------------------------------------------------------------


def _no_quotas(_request: Any, code: ErrorCode) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=None, entries=None)


def _no_quota_altered(request: Any, code: ErrorCode) -> AlterClientQuotasResponse:
    entries = [
        ResponseEntryData(
            error_code=code,
            error_message=MESSAGE,
            entity=[ResponseEntityData(entity_type=part.entity_type, entity_name=part.entity_name) for part in entry.entity],
        )
        for entry in request.entries
    ]
    return AlterClientQuotasResponse(entries=entries)


def _no_users(request: Any, code: ErrorCode) -> DescribeUserScramCredentialsResponse:
    """A refusal like Kafka's, which names no user. (For a request for all users, Kafka does not answer at all.)"""
    results = [DescribeUserScramCredentialsResult(error_code=code, error_message=None) for _ in request.users or ()]
    return DescribeUserScramCredentialsResponse(error_code=code, error_message=None, results=results)


def _no_user_altered(request: Any, code: ErrorCode) -> AlterUserScramCredentialsResponse:
    asked: Iterable[Any] = (*request.deletions, *request.upsertions)
    results = [
        AlterUserScramCredentialsResult(user=name, error_code=code, error_message=MESSAGE)
        for name in dict.fromkeys(each.name for each in asked)
    ]
    return AlterUserScramCredentialsResponse(results=results)


def guard_create_token(asked: Asked, request: CreateDelegationTokenRequest, go_on: GoOn) -> Answer:
    """CreateDelegationToken (api 38): a token for another user needs a right on that user."""
    requester = asked.context.principal
    owner = f"{request.owner_principal_type}:{request.owner_principal_name}" if request.owner_principal_name else requester
    if owner == requester or not may_ask(asked.context) or asked.access.allows(Operation.CREATE_TOKENS, ResourceType.USER, owner):
        return go_on(request)
    requester_type, _, requester_name = requester.partition(":")
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        principal_type=request.owner_principal_type or "",
        principal_name=request.owner_principal_name or "",
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
    )


# -- brokers ----------------------------------------------------------------------------------------------------------------


def _not_unregistered(_request: Any, code: ErrorCode) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=code, error_message=MESSAGE)


def _no_feature(_request: Any, code: ErrorCode) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=code, error_message=MESSAGE)


def _no_quorum(_request: Any, code: ErrorCode) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=code, error_message=MESSAGE)


def _no_envelope(_request: Any, code: ErrorCode) -> EnvelopeResponse:
    return EnvelopeResponse(error_code=code)


def _no_partition(_request: Any, code: ErrorCode) -> AlterPartitionResponse:
    return AlterPartitionResponse(error_code=code)


def _no_sign_of_life(_request: Any, code: ErrorCode) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(error_code=code)


def _no_ids(_request: Any, code: ErrorCode) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=code)


GUARDS: dict[int, Guard] = {
    ApiKey.DESCRIBE_ACLS: on_cluster(Operation.DESCRIBE, _no_acls),
    ApiKey.CREATE_ACLS: on_cluster(Operation.ALTER, _none_created),
    ApiKey.DELETE_ACLS: on_cluster(Operation.ALTER, _none_deleted),
    ApiKey.ALTER_REPLICA_LOG_DIRS: on_cluster(Operation.ALTER, _none_moved),
    ApiKey.CREATE_DELEGATION_TOKEN: guard_create_token,
    ApiKey.ELECT_LEADERS: on_cluster(Operation.ALTER, _none_elected),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: on_cluster(Operation.ALTER, _none_reassigned),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: on_cluster(Operation.DESCRIBE, _none_listed),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: on_cluster(Operation.DESCRIBE_CONFIGS, _no_quotas),
    ApiKey.ALTER_CLIENT_QUOTAS: on_cluster(Operation.ALTER_CONFIGS, _no_quota_altered),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: on_cluster(Operation.DESCRIBE, _no_users),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: on_cluster(Operation.ALTER, _no_user_altered),
    ApiKey.DESCRIBE_QUORUM: on_cluster(Operation.DESCRIBE, _no_quorum),
    ApiKey.ALTER_PARTITION: on_cluster(Operation.CLUSTER_ACTION, _no_partition),
    ApiKey.UPDATE_FEATURES: on_cluster(Operation.ALTER, _no_feature),
    ApiKey.ENVELOPE: on_cluster(Operation.CLUSTER_ACTION, _no_envelope),
    ApiKey.BROKER_HEARTBEAT: on_cluster(Operation.CLUSTER_ACTION, _no_sign_of_life),
    ApiKey.UNREGISTER_BROKER: on_cluster(Operation.ALTER, _not_unregistered),
    ApiKey.ALLOCATE_PRODUCER_IDS: on_cluster(Operation.CLUSTER_ACTION, _no_ids),
}
