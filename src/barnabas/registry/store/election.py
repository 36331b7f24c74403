"""Elects the registry that writes: the leader of a group, as in Confluent's registry (protocol type `sr`).

Each member sends its URL. The group's leader chooses the eligible registry with the smallest URL, and every member gets that URL in its
assignment. Safety does not depend on this: the store itself fences an older writer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from barnabas.client import election
from barnabas.client.config import ClientConfig

PROTOCOL_TYPE, PROTOCOL = "sr", "v0"
SESSION_TIMEOUT_MS = 10_000
Changed = Callable[[str | None], None]


class Election(election.Election):
    """A member of the group.

    Args:
        url: the URL of this registry for the others.
        changed: called with the URL of the leader; None while there is none.
    """

    def __init__(self, config: ClientConfig, group: str, url: str, changed: Changed) -> None:
        def told(assignment: bytes | None) -> None:
            changed(None if assignment is None else _url(msgspec.json.decode(assignment).get("master_identity")))

        super().__init__(config, group, msgspec.json.encode(_identity(url)), RULES, told)


def _identity(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {"version": 1, "host": parts.hostname or "", "port": port, "master_eligibility": True, "scheme": parts.scheme}


def _url(identity: dict[str, Any] | None) -> str | None:
    if not identity:
        return None
    host = identity["host"]
    return f"{identity.get('scheme', 'http')}://{f'[{host}]' if ':' in host else host}:{identity['port']}"


def _choose(members: Mapping[str, bytes]) -> bytes:
    identities = {member_id: msgspec.json.decode(metadata) for member_id, metadata in members.items()}
    eligible = {member_id: each for member_id, each in identities.items() if each.get("master_eligibility", True)}
    master = min(eligible, key=lambda member_id: (_url(eligible[member_id]) or "", member_id), default=None)
    urls = [_url(each) for each in identities.values()]
    error = 1 if len(set(urls)) != len(urls) else 0  # like Confluent's registry: an error if two registries have the same URL
    told = {"version": 1, "error": error, "master": master, "master_identity": eligible.get(master or "")}
    return msgspec.json.encode(told)


RULES = election.Rules(PROTOCOL_TYPE, PROTOCOL, _choose, SESSION_TIMEOUT_MS)
