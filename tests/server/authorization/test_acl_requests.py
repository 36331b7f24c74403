"""CreateAcls, DescribeAcls and DeleteAcls: what they refuse, with Kafka 4.3's codes and words, and what they bound."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import limits
from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from barnabas.security.acls import Operation, ResourceType
from tests.server.authorization.people import People, acl, guarded
from tests.server.in_process import running

OK: dict[str, Any] = {
    "resource_type": 2,
    "resource_name": "t",
    "resource_pattern_type": 3,
    "principal": "User:x",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
NO_COLON = "(no colon is present separating the principal type from the principal name)"
# Kafka's messages, with two exceptions: it fails at ANY and MATCH (UNKNOWN_SERVER_ERROR), and at 0 it closes the connection.
CREATIONS: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({"resource_type": 9}, "Invalid resourceType UNKNOWN"),
    ({"resource_type": 1}, "Invalid resourceType ANY"),
    ({"resource_pattern_type": 9}, "Invalid patternType UNKNOWN"),
    ({"resource_pattern_type": 2}, "Invalid patternType MATCH"),
    ({"operation": 99}, "Invalid operation UNKNOWN"),
    ({"operation": 1}, "Invalid operation ANY"),
    ({"permission_type": 7}, "Invalid permissionType UNKNOWN"),
    ({"permission_type": 0}, "Invalid permissionType UNKNOWN"),
    ({"resource_name": ""}, "Invalid empty resource name"),
    ({"principal": "x"}, f"Could not parse principal from `x` {NO_COLON}"),
    ({"principal": ""}, f"Could not parse principal from `` {NO_COLON}"),
    ({"principal": ":x"}, None),
    ({"host": "no host"}, None),
    ({"host": "10.0.0.0/8"}, None),
    ({"host": "10.0.0.0/88"}, "Invalid range of addresses 10.0.0.0/88"),  # Kafka knows no address ranges
    ({"host": "0:0:0:0:0:0:0:1"}, None),
    ({"operation": 9}, None),  # the broker does not check that topics support the operation
    ({"resource_name": "a b/c"}, None),
    ({"resource_type": 4}, "The only valid name for the CLUSTER resource is kafka-cluster"),
    ({"resource_type": 4, "resource_name": "kafka-cluster"}, None),
]
FILTER: dict[str, Any] = {
    "resource_type_filter": 2,
    "resource_name_filter": "t",
    "pattern_type_filter": 3,
    "principal_filter": "User:x",
    "host_filter": "*",
    "operation": 3,
    "permission_type": 3,
}
FILTERS: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({"resource_type_filter": 9}, "Unknown patternFilter."),
    ({"pattern_type_filter": 9}, "Unknown patternFilter."),
    ({"operation": 99}, "Unknown entryFilter."),
    ({"permission_type": 0}, "Unknown entryFilter."),
    ({"principal_filter": "x"}, None),
]


@pytest.fixture
async def people(tmp_path: Path) -> AsyncIterator[People]:
    async with guarded(tmp_path) as found:
        yield found


async def create(people: People, creations: list[dict[str, Any]], version: int = 3) -> list[tuple[int, str | None]]:
    request = CreateAclsRequest(creations=[AclCreation(**{**OK, **each}) for each in creations])
    answer = await people.admin.ask((30, version), request, CreateAclsResponse)
    return [(result.error_code, result.error_message) for result in answer.results]


async def count(people: People, version: int = 3, **change: Any) -> tuple[int, int]:
    """The error code, and how many bindings a filter means."""
    answer = await people.admin.ask((29, version), DescribeAclsRequest(**{**FILTER, **change}), DescribeAclsResponse)
    return answer.error_code, sum(len(resource.acls) for resource in answer.resources)


async def test_creations_are_checked_as_kafka_does(people: People) -> None:
    told = await create(people, [change for change, _ in CREATIONS])
    refused = ErrorCode.INVALID_REQUEST
    assert told == [(0, "") if message is None else (refused, message) for _, message in CREATIONS]


async def test_filters_are_checked_as_kafka_does(people: People) -> None:
    await create(people, [{}])
    for change, message in FILTERS:
        assert await count(people, **change) == (0, 0 if change else 1)
        wanted = DeleteAclsFilter(**{**FILTER, **change})
        answer = await people.admin.ask((31, 3), DeleteAclsRequest(filters=[wanted]), DeleteAclsResponse)
        (result,) = answer.filter_results
        expected = (0, None) if message is None else (ErrorCode.INVALID_REQUEST, message)
        assert (result.error_code, result.error_message) == expected
        if not change:
            assert len(result.matching_acls) == 1
            await create(people, [{}])


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_every_version(people: People, version: int) -> None:
    assert await create(people, [{"resource_name": "v", "resource_pattern_type": 4}], version) == [(0, "")]
    assert await count(people, version, resource_name_filter="v", pattern_type_filter=4) == (0, 1)
    assert await count(people, version, resource_name_filter="vx", pattern_type_filter=2) == (0, 1)
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**{**FILTER, "resource_name_filter": None, "pattern_type_filter": 1})])
    answer = await people.admin.ask((31, version), request, DeleteAclsResponse)
    assert [(each.resource_name, each.pattern_type) for each in answer.filter_results[0].matching_acls] == [("v", 4)]


async def test_there_is_an_end_to_bindings(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_ACLS", 2)
    refused = ErrorCode.INVALID_REQUEST
    assert await create(people, [{"resource_name": name} for name in "ab"]) == [(0, ""), (0, "")]
    assert await create(people, [{"resource_name": "b"}]) == [(0, "")]  # already exists
    assert await create(people, [{"resource_name": "c"}]) == [(refused, "there would be more than 2 bindings")]
    monkeypatch.setattr(limits, "MAX_ACLS_PER_REQUEST", 1)
    assert {code for code, _ in await create(people, [{}, {}])} == {refused}


async def test_what_is_remembered_of_decisions_is_bounded(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_DECISIONS_PER_SESSION", 3)
    monkeypatch.setattr(limits, "MAX_DECIDED_SESSIONS", 1)
    await people.allow(acl(ResourceType.TOPIC, "t5", Operation.READ))
    alice, bob = await people.connect("User:alice"), await people.connect("User:bob")
    control = people.admin.broker.authorizer
    assert control is not None
    for _ in range(2):
        for client, principal in ((alice, "User:alice"), (bob, "User:bob")):
            (connection,) = [each for each in client.broker.connections if each.principal == principal]
            access = control.of_connection(connection)
            found = [access.allows_topic(Operation.READ, f"t{number}") for number in range(10)]
            assert found == [principal == "User:alice" and number == 5 for number in range(10)]
            assert len(access._decided) <= 3
    assert len(control._sessions) == 1


async def test_without_an_authorizer_there_are_none(tmp_path: Path) -> None:
    async with running([tmp_path]) as client:
        disabled = ErrorCode.SECURITY_DISABLED
        answer = await client.ask((30, 3), CreateAclsRequest(creations=[AclCreation(**OK)]), CreateAclsResponse)
        assert answer.results[0].error_code == disabled
        assert (await client.ask((29, 3), DescribeAclsRequest(**FILTER), DescribeAclsResponse)).error_code == disabled
        answer = await client.ask((31, 3), DeleteAclsRequest(filters=[DeleteAclsFilter(**FILTER)]), DeleteAclsResponse)
        assert answer.filter_results[0].error_code == disabled


async def test_bindings_are_made_and_deleted_in_as_many_commits_as_it_takes(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.server.apis.acls.AT_ONCE", 2)
    names = [f"t{number}" for number in range(5)]
    assert await create(people, [{"resource_name": name} for name in names]) == [(0, "")] * 5
    wanted = DeleteAclsFilter(**{**FILTER, "resource_name_filter": None})
    answer = await people.admin.ask((31, 3), DeleteAclsRequest(filters=[wanted]), DeleteAclsResponse)
    assert [found.resource_name for found in answer.filter_results[0].matching_acls] == names
