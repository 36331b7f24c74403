"""The quota of a client by Kafka's order of precedence, the most specific entity first.

    user and client id, user and any client id, user,
    any user and client id, any user and any client id, any user,
    client id, any client id

If the quota was found by a client id, each client id has its own use; if a user was part of the entity, for each user. All
clients of a user share the user's quota. Each kind of quota is looked up separately: a user may get the byte rate from one
entity and the request percentage from another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.addresses import plain_address
from barnabas.quota.entities import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    GROUP,
    IP,
    USER,
    Entity,
    Quotas,
)


class Applied(NamedTuple):
    """A quota and the clients that share it: an empty user or client id means all of them."""

    bound: float
    user: str
    client_id: str


class QuotaTable:
    """The declared quotas, indexed for look-ups. Never changes."""

    def __init__(self, declared: Mapping[Entity, Quotas]) -> None:
        self._by_entity = {entity: quotas for entity, quotas in declared.items() if quotas}
        of_types = {tuple(kind for kind, _ in entity) for entity in self._by_entity}
        self.has_clients = any(USER in types or CLIENT_ID in types for types in of_types)
        self.has_addresses = (IP,) in of_types
        # by normalised address; the lowest rate if several entities name the same address
        self._rates: dict[str | None, float] = {}
        for entity, quotas in self._by_entity.items():
            if entity[0][0] == IP and CONNECTION_CREATION_RATE in quotas:
                name, rate = entity[0][1], quotas[CONNECTION_CREATION_RATE]
                address = None if name is None else plain_address(name)
                self._rates[address] = min(rate, self._rates.get(address, rate))
        # None is the default of all groups
        self.groups = frozenset(entity[0][1] for entity in self._by_entity if entity[0][0] == GROUP)

    def find(self, key: str, user: str, client_id: str) -> Applied | None:
        """The quota `key` of a client; None if there is none."""
        for entity, by_user, by_client in (
            (((CLIENT_ID, client_id), (USER, user)), True, True),
            (((CLIENT_ID, None), (USER, user)), True, True),
            (((USER, user),), True, False),
            (((CLIENT_ID, client_id), (USER, None)), True, True),
            (((CLIENT_ID, None), (USER, None)), True, True),
            (((USER, None),), True, False),
            (((CLIENT_ID, client_id),), False, True),
            (((CLIENT_ID, None),), False, True),
        ):
            bound = self._bound(entity, key)
            if bound is not None:
                return Applied(bound, user if by_user else "", client_id if by_client else "")
        return None

    def connection_rate(self, address: str) -> float | None:
        """The allowed connections from an address, in connections a second; None for no limit."""
        of_one = self._rates.get(plain_address(address))
        return self._rates.get(None) if of_one is None else of_one

    def group_rate(self, group_id: str) -> float | None:
        """The bytes a second that all members of a group together may consume; None for no limit."""
        of_one = self._bound(((GROUP, group_id),), CONSUMER_BYTE_RATE)
        return self._bound(((GROUP, None),), CONSUMER_BYTE_RATE) if of_one is None else of_one

    def _bound(self, entity: Entity, key: str) -> float | None:
        quotas = self._by_entity.get(entity)
        return None if quotas is None else quotas.get(key)
