"""Creates, describes and deletes access control lists: CreateAcls, DescribeAcls, DeleteAcls.

The cluster keeps bindings whether or not this broker has an authorizer. Without an authorizer no broker decides by them, so this broker
refuses these requests, as Kafka does. When a client asks for the bindings of one principal, the answer also has those that the principal
gets by its roles. They disappear when the role is taken from the principal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from barnabas import limits
from barnabas.cluster.metadata.declared import Kind
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse
from barnabas.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from barnabas.security.acls import (
    CLUSTER_NAME,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    acl_as_json,
    acl_key,
)
from barnabas.security.authorizer import network_of
from barnabas.server.handlers import Handler, takes

if TYPE_CHECKING:
    from barnabas.cluster.membership.member import Member
    from barnabas.cluster.membership.standalone_controller import StandaloneController
    from barnabas.cluster.metadata.declared import Changes
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.server.authorization.access_control import AccessControl
    from barnabas.server.requests import RequestContext

W = TypeVar("W", bound=IntEnum)
AT_ONCE = 1_000  # bindings made or deleted in one commit: a store may not take all bindings of a request at once


class AclBroker(Protocol):
    """The parts of the broker that this module uses."""

    authorizer: AccessControl | None
    controller: StandaloneController | Member


def _disabled() -> KafkaError:
    return KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def known(words: type[W], number: int) -> W:
    """The meaning of a number in a request; UNKNOWN for a number of a later protocol."""
    return words(number) if number in words.__members__.values() else words(0)


# -- CreateAcls -------------------------------------------------------------------------------------------------------------


async def handle_create_acls(broker: AclBroker, _context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    """CreateAcls (api 30): each binding succeeds or fails by itself; a binding that exists already is no error."""
    if broker.authorizer is None:
        return CreateAclsResponse(results=[_created(_disabled()) for _ in request.creations])
    outcomes = [_checked(creation) for creation in request.creations]
    wanted = [outcome for outcome in outcomes if isinstance(outcome, Acl)]
    failures: dict[Acl, KafkaError] = {}
    if len(request.creations) > limits.MAX_ACLS_PER_REQUEST:
        failures = dict.fromkeys(wanted, _invalid(f"more than {limits.MAX_ACLS_PER_REQUEST} bindings in one request"))
        wanted = []
    for start in range(0, len(wanted), AT_ONCE):
        piece = wanted[start : start + AT_ONCE]
        try:
            await broker.controller.declare(partial(_with, piece))
        except KafkaError as error:
            failures |= dict.fromkeys(piece, error)
    results = [_created(outcome if isinstance(outcome, KafkaError) else failures.get(outcome)) for outcome in outcomes]
    return CreateAclsResponse(results=results)


def _with(wanted: Iterable[Acl], image: MetadataImage) -> tuple[None, Changes]:
    declared = image.declarations(Kind.ACL)
    made = {(Kind.ACL, acl_key(acl)): acl_as_json(acl) for acl in wanted}
    if len(declared) + sum(key not in declared for _, key in made) > limits.MAX_ACLS:
        raise _invalid(f"there would be more than {limits.MAX_ACLS} bindings")
    return None, made


def _checked(creation: AclCreation) -> Acl | KafkaError:
    """The binding that the client asks for, or the reason why the binding is invalid."""
    kind, pattern = known(ResourceType, creation.resource_type), known(PatternType, creation.resource_pattern_type)
    operation, permission = known(Operation, creation.operation), known(Permission, creation.permission_type)
    name, principal = creation.resource_name, creation.principal
    for what, value in (("resourceType", kind), ("operation", operation), ("permissionType", permission)):
        if value.name in ("UNKNOWN", "ANY"):
            return _invalid(f"Invalid {what} {value.name}")
    if pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        return _invalid(f"Invalid patternType {pattern.name}")
    if kind is ResourceType.CLUSTER and name != CLUSTER_NAME:
        return _invalid("The only valid name for the CLUSTER resource is kafka-cluster")
    if not name:
        return _invalid("Invalid empty resource name")
    if ":" not in principal:
        return _invalid(
            f"Could not parse principal from `{principal}` (no colon is present separating the principal type from the principal name)"
        )
    if "/" in creation.host and network_of(creation.host) is None:  # a denial for an invalid range would deny nobody
        return _invalid(f"Invalid range of addresses {creation.host}")
    return Acl(kind, name, pattern, principal, creation.host, operation, permission)


def _created(error: KafkaError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult()
    return AclCreationResult(error_code=error.code, error_message=error.message)


# -- DescribeAcls -----------------------------------------------------------------------------------------------------------


def handle_describe_acls(broker: AclBroker, _context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """DescribeAcls (api 29)."""
    try:
        if broker.authorizer is None:
            raise _disabled()
        wanted = _filter_of(request)
        found = [] if _asks_for_unknown(wanted) else broker.authorizer.matching(wanted)
    except KafkaError as error:
        return DescribeAclsResponse(error_code=error.code, error_message=error.message)
    resources = [
        DescribeAclsResource(
            resource_type=kind,
            resource_name=name,
            pattern_type=pattern,
            acls=[
                AclDescription(principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission)
                for acl in acls
            ],
        )
        for (kind, name, pattern), acls in groupby(found, key=lambda acl: acl[:3])
    ]
    return DescribeAclsResponse(resources=resources)


def _filter_of(request: Any) -> AclFilter:
    return AclFilter(
        known(ResourceType, request.resource_type_filter),
        request.resource_name_filter,
        known(PatternType, request.pattern_type_filter),
        request.principal_filter,
        request.host_filter,
        known(Operation, request.operation),
        known(Permission, request.permission_type),
    )


def _asks_for_unknown(wanted: AclFilter) -> str | None:
    """The part of a filter that has unknown numbers, so that the filter matches no binding; None if all numbers are known."""
    if ResourceType.UNKNOWN is wanted.resource_type or PatternType.UNKNOWN is wanted.pattern:
        return "patternFilter"
    return "entryFilter" if Operation.UNKNOWN is wanted.operation or Permission.UNKNOWN is wanted.permission else None


# -- DeleteAcls -------------------------------------------------------------------------------------------------------------


async def handle_delete_acls(broker: AclBroker, _context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """DeleteAcls (api 31): each filter succeeds or fails by itself."""
    authorizer = broker.authorizer
    if authorizer is None:
        return DeleteAclsResponse(filter_results=[_refused(_disabled()) for _ in request.filters])
    results = []
    for each in request.filters:
        try:
            wanted = _filter_of(each)
            if (unknown := _asks_for_unknown(wanted)) is not None:
                raise _invalid(f"Unknown {unknown}.")
            gone = await _delete(broker, authorizer, wanted)
        except KafkaError as error:
            results.append(_refused(error))
        else:
            results.append(DeleteAclsFilterResult(error_message=None, matching_acls=[_gone(acl) for acl in sorted(gone)]))
    return DeleteAclsResponse(filter_results=results)


async def _delete(broker: AclBroker, authorizer: AccessControl, wanted: AclFilter) -> list[Acl]:
    """Delete the matching bindings and return them. Raises the error of a refused deletion; earlier deletions of the call stay in force."""
    gone: list[Acl] = []
    while True:
        piece = await broker.controller.declare(partial(_without, authorizer, wanted))
        gone += piece
        if len(piece) < AT_ONCE:
            return gone


def _without(authorizer: AccessControl, wanted: AclFilter, image: MetadataImage) -> tuple[Sequence[Acl], Changes]:
    known = authorizer.parsed(image.declarations(Kind.ACL))
    gone = dict(islice(((key, acl) for key, acl in known.items() if wanted.matches(acl)), AT_ONCE))
    return list(gone.values()), {(Kind.ACL, key): None for key in gone}


def _refused(error: KafkaError) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_code=error.code, error_message=error.message)


def _gone(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


HANDLERS: dict[int, Handler[AclBroker]] = {
    ApiKey.DESCRIBE_ACLS: takes(DescribeAclsRequest, handle_describe_acls),
    ApiKey.CREATE_ACLS: takes(CreateAclsRequest, handle_create_acls),
    ApiKey.DELETE_ACLS: takes(DeleteAclsRequest, handle_delete_acls),
}
