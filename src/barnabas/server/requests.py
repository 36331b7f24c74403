"""The context of a request, for its handler."""

from __future__ import annotations

from typing import NamedTuple


class RequestContext(NamedTuple):
    """The request's header, and its origin."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    client_host: str
    principal: str
    listener: str
    local_port: int
    client_software: tuple[str, str]
    groups: tuple[str, ...] = ()  # of the principal, for example "Group:finance"
    by_token: bool = False  # the client logged in with a delegation token
