"""The rights of callers of the HTTP interfaces whose state is in one topic: READ on the topic to see it, WRITE to change it."""

from __future__ import annotations

from barnabas.security.acls import Operation, Resource, ResourceType
from barnabas.security.rights import ClusterRights, RightsUnknown
from barnabas.web.routing import Caller, HttpError


async def check_topic_right(rights: ClusterRights | None, caller: Caller, operation: Operation, topic: str) -> None:
    """Return if the caller may do the operation; a right that the caller has just got counts.

    Args:
        rights: None if callers do not log in, and may do all.

    Raises:
        HttpError: 403, or 503 if the cluster does not show its rights.
    """
    if rights is None:
        return
    resource = Resource(ResourceType.TOPIC, topic)
    try:
        await rights.refresh()
        if rights.allows(caller.principal, caller.host, operation, resource):
            return
        if await rights.renew() and rights.allows(caller.principal, caller.host, operation, resource):
            return
    except RightsUnknown as error:
        raise HttpError(503, str(error)) from None
    raise HttpError(403, f"{caller.principal} needs {operation.name} on the topic {topic}")
