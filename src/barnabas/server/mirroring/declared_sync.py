"""The controller's part of a link besides topics: ACLs, client quotas and users of the source are declared here."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.client.errors import UnsupportedRequest
from barnabas.client.plans import Call
from barnabas.cluster.metadata.declared import Changes, Kind
from barnabas.errors import ErrorCode
from barnabas.mirror import declared
from barnabas.mirror.status import refusal
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.values import USER_CREDENTIALS
from barnabas.quota.entities import Entity, entity_of
from barnabas.security import users
from barnabas.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from barnabas.server.authorization.access_control import parse_super_users

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.client.asynchronous import AsyncClient
    from barnabas.cluster.metadata.image import MetadataImage
    from barnabas.mirror.link import Link
    from barnabas.server.services import Services

logger = logging.getLogger(__name__)
AT_ONCE = 1_000  # declarations and marks of one commit
ANY = 1  # of each enumeration in a filter
Plan = Callable[["MetadataImage"], declared.DeclaredChanges]


async def sync_declared(services: Services, link: Link, client: AsyncClient) -> dict[str, str]:
    """Declare here what the link copies besides topics; returns what cannot be copied, with the reason.

    Raises:
        ClientError: the source does not answer.
        KafkaError: this broker is no longer the controller, or the store is not available.
    """
    refused: dict[str, str] = {}
    if link.values["sync.topic.acls.enabled"]:
        reason = await _sync_acls(services, link, client)
        refused |= {"acls": reason} if reason else {}
    if link.values["sync.client.quotas.enabled"]:
        reason = await _sync_quotas(services, link, client)
        refused |= {"quotas": reason} if reason else {}
    if link.values["sync.users.enabled"]:
        reason = await _sync_users(services, link, client)
        refused |= {"users": reason} if reason else {}
    return refused


async def _sync_users(services: Services, link: Link, client: AsyncClient) -> str:
    wanted = DescribeConfigsResource(resource_type=USER_CREDENTIALS, resource_name="", configuration_keys=None)
    answer = await client.request(Call(DescribeConfigsRequest(resources=[wanted])))
    result = answer.results[0]
    if result.error_code == ErrorCode.INVALID_REQUEST:
        return "the source shows no credentials; only barnabas does. Add the users here by `barnabas user add`"
    if result.error_code:
        return f"{refusal(result.error_code)}: {result.error_message}"
    theirs = {item.name: _fields(item.value) for item in result.configs}
    secret = users.encode_secret(secrets.token_bytes(users.SECRET_BYTES))
    super_users = parse_super_users(services.config.super_users)

    def plan(image: MetadataImage) -> declared.DeclaredChanges:
        found = declared.changes(image, link.name, Kind.USER, declared.copied_users(link, theirs, super_users))
        is_first = found and users.SECRET not in image.declarations(Kind.USER)
        return {(Kind.USER, users.SECRET): secret, **found} if is_first else found

    await _declare(services, link, plan)
    return ""


def _fields(text: str | None) -> Any:
    try:
        return json.loads(text or "")
    except ValueError:
        return None


async def _sync_acls(services: Services, link: Link, client: AsyncClient) -> str:
    if not services.config.authorizer_class_name:
        return "the brokers here have no authorizer.class.name"
    theirs: list[Acl] = []
    for kind in sorted(declared.COPIED_RESOURCES):
        request = DescribeAclsRequest(
            resource_type_filter=kind,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        answer = await client.request(Call(request))
        if answer.error_code:
            return refusal(answer.error_code)
        theirs += [
            Acl(
                ResourceType(resource.resource_type),
                resource.resource_name,
                PatternType(resource.pattern_type),
                acl.principal,
                acl.host,
                Operation(acl.operation),
                Permission(acl.permission_type),
            )
            for resource in answer.resources
            for acl in resource.acls
            if acl.operation in Operation.__members__.values()
        ]

    def plan(image: MetadataImage) -> declared.DeclaredChanges:
        wanted = declared.copied_acls(link, theirs, image)
        return declared.changes(image, link.name, Kind.ACL, wanted, partial(declared.is_released_acl, image, link.name))

    await _declare(services, link, plan)
    return ""


async def _sync_quotas(services: Services, link: Link, client: AsyncClient) -> str:
    try:
        answer = await client.request(Call(DescribeClientQuotasRequest(components=[], strict=False)))
    except UnsupportedRequest:  # before Kafka 2.6
        return "the source is too old to tell its quotas"
    if answer.error_code:
        return refusal(answer.error_code)
    theirs: dict[Entity, dict[str, float]] = {
        entity_of((each.entity_type, each.entity_name) for each in entry.entity): {each.key: each.value for each in entry.values}
        for entry in answer.entries or ()
    }
    wanted = declared.copied_quotas(theirs)
    await _declare(services, link, lambda image: declared.changes(image, link.name, Kind.QUOTA, wanted))
    return ""


async def _declare(services: Services, link: Link, plan: Plan) -> None:
    """Commit the changes in pieces. Each piece is planned again on the image of its commit, so that it keeps what people changed."""
    found = plan(services.metadata)
    for piece in declared.pieces(found, AT_ONCE):

        def due(image: MetadataImage, piece: declared.DeclaredChanges = piece) -> tuple[None, Changes]:
            again = plan(image)
            return None, {key: value for key, value in again.items() if key in piece}

        await services.controller.declare(due)
    if found:
        kinds: Sequence[str] = sorted({kind.value for kind, _ in found if kind is not Kind.MIRRORED})
        logger.info("event=mirror-declarations-followed link=%s kinds=%s count=%d", link.name, ",".join(kinds), len(found))
