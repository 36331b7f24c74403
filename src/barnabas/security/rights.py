"""The rights from a cluster's access control lists, for a program outside its brokers: it reads the bindings over the protocol.

Owns a copy of the bindings, and reads it again when it is too old. The decisions are the same as in a broker (`authorizer`).

Rules
  1. A cluster without an authorizer allows everything.
  2. If the cluster does not answer, the last bindings are valid for a limited time; after that nobody has a right.
  3. Kafka never shows its super users, so a setting names them. barnabas shows them to principals that may describe its brokers.
  4. Only the broker knows the groups of a principal; so bindings for groups do not count here.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from barnabas import limits
from barnabas.client.administration import describe_acls, describe_broker_config
from barnabas.client.asynchronous import AsyncClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ResourceError
from barnabas.error_codes import ErrorCode
from barnabas.errors import BarnabasError
from barnabas.protocol.messages.describe_acls import DescribeAclsResource
from barnabas.security.acls import Acl, Operation, PatternType, Permission, Resource, ResourceType
from barnabas.security.authorizer import Authorizer, Session

logger = logging.getLogger(__name__)
SUPER_USERS, IF_NONE = "super.users", "allow.everyone.if.no.acl.found"


class RightsUnknown(BarnabasError):
    """The cluster does not return its bindings."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"the access control lists of the cluster cannot be read: {self.reason}"


class ClusterRights:
    """Decides whether a principal may do an operation on a cluster.

    Args:
        config: the client settings for the cluster; their principal needs DESCRIBE on the cluster.
        settings: may contain `super.users` and `allow.everyone.if.no.acl.found`, for a cluster that does not show them.
    """

    def __init__(self, config: ClientConfig, settings: Mapping[str, str] | None = None) -> None:
        timeout_ms = min(config.default_api_timeout_ms, int(limits.ACLS_TIMEOUT_S * 1000))
        self._client = AsyncClient(replace(config, default_api_timeout_ms=timeout_ms))
        self._settings = {key: value for key, value in (settings or {}).items() if key in {SUPER_USERS, IF_NONE}}
        self._authorizer: Authorizer | None = None  # None after a refresh means that everything is allowed
        self._asked_s = self._answered_s = -math.inf  # times of the last attempt, and of the last successful one
        self._asking: asyncio.Task[None] | None = None

    async def refresh(self) -> None:
        """Read the bindings again if they are too old; raises RightsUnknown."""
        kept_s = limits.ACLS_KEPT_S if self._asked_s == self._answered_s else limits.ACLS_RETRY_S
        if asyncio.get_running_loop().time() >= self._asked_s + kept_s:
            await self._share_asking()

    async def renew(self) -> bool:
        """Read the bindings again, unless they are at most a second old: a caller may have got a right in the meantime. Returns
        whether they were read; raises RightsUnknown."""
        if asyncio.get_running_loop().time() < self._asked_s + limits.ACLS_RETRY_S:
            return False
        await self._share_asking()
        return True

    async def _share_asking(self) -> None:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
            # retrieves the exception even if no caller waits any more
            self._asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(self._asking)

    def allows(self, principal: str, host: str, operation: Operation, resource: Resource) -> bool:
        """Whether the last bindings allow an operation; call `refresh` first."""
        if self._authorizer is None:
            return True
        session = self._authorizer.with_roles(Session(principal, host))
        return self._authorizer.is_allowed(session, operation, resource)

    async def close(self) -> None:
        """Close the connections."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)
        await self._client.close()

    async def _ask(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._authorizer = await self._read()
        except BarnabasError as error:
            self._asked_s = loop.time()
            if self._asked_s >= self._answered_s + limits.ACLS_VALID_S:
                self._asked_s = -math.inf  # makes the next request ask again at once
                raise RightsUnknown(str(error)) from error
            logger.warning("event=acls-unreadable reason=%r", str(error))
            return
        self._asked_s = self._answered_s = loop.time()

    async def _read(self) -> Authorizer | None:
        try:
            resources = await self._client.run(describe_acls(self._client.config))
        except ResourceError as error:
            if error.code == ErrorCode.SECURITY_DISABLED:
                return None
            raise
        acls = [acl for resource in resources for acl in _bindings(resource)]
        shown = {key: value for key, value in (await self._shown()).items() if value is not None} | self._settings
        named = {name.strip() for name in shown.get(SUPER_USERS, "").split(";") if name.strip()}
        return Authorizer(acls, super_users=named, allow_if_no_acl=shown.get(IF_NONE, "").lower() == "true")

    async def _shown(self) -> dict[str, str | None]:
        """The settings of a broker; none if the principal may not see them."""
        try:
            return await self._client.run(describe_broker_config(self._client.config, self._client.cluster))
        except ResourceError as error:
            if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                return {}
            raise


def _bindings(resource: DescribeAclsResource) -> Iterator[Acl]:
    """The bindings with a resource type and an operation that this version knows; no caller needs decisions about others."""
    for acl in resource.acls:
        try:
            yield Acl(
                ResourceType(resource.resource_type), resource.resource_name, PatternType(resource.pattern_type), acl.principal,
                acl.host, Operation(acl.operation), Permission(acl.permission_type),
            )  # fmt: skip
        except ValueError:
            continue
