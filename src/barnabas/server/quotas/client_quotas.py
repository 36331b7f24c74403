"""The client quotas of this broker: the declared ones, their use, and the quota of each client.

While a quota of clients is declared, `Broker.client_quotas` is a `ClientQuotas`, and None otherwise: a broker without quotas checks
nothing else.

Rules
  1. A budget is looked up once for a user and a client id, and again after any change of the declared quotas.
  2. After a change all waiting connections continue and are measured again, because the wait may be too long for the changed quota.
  3. A template of produce requests (`producing/request_template.py`) has the budget of its client, and is forgotten with the budgets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from math import inf
from typing import TYPE_CHECKING, Any

from barnabas import limits
from barnabas.cluster.metadata.declared import Kind
from barnabas.quota.budget import Budget
from barnabas.quota.entities import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    MAX_INT,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    decode_all,
)
from barnabas.quota.meters import Meter, MeterKey, Meters, Span
from barnabas.quota.table import QuotaTable
from barnabas.server.quotas.callback import CallbackQuotas
from barnabas.server.quotas.group_members import GroupMembers

if TYPE_CHECKING:
    from barnabas.plugins.quotas import ClientQuotaCallback
    from barnabas.server.connection import Connection
    from barnabas.server.declarations import DeclarationFollowers
    from barnabas.server.services import Services

NO_TABLE = QuotaTable({})
OF_GROUP = f"group_{CONSUMER_BYTE_RATE}"  # the kind of a meter whose client id is a group


class ClientQuotas:
    """The client quotas of one broker.

    Args:
        connections: the open connections.
        callback: a user's class that decides the quota of each client.
        use: called after each change with this object, or with None while there are no client quotas.
    """

    def __init__(
        self,
        services: Services,
        *,
        connections: Collection[Connection],
        declarations: DeclarationFollowers,
        members: GroupMembers,
        callback: ClientQuotaCallback | None,
        use: Callable[[ClientQuotas | None], None],
    ) -> None:
        config = services.config
        self._services = services
        self._connections = connections
        self._declarations = declarations
        self._use = use
        self._window_s = config.quota_window_size_seconds
        self._budgets: dict[tuple[str, str | None], Budget | None] = {}
        self.table = NO_TABLE
        self._callback = None if callback is None else CallbackQuotas(callback)
        self.members = members
        self.meters = Meters(
            Span(config.quota_window_num, config.quota_window_size_seconds),
            Span(config.controller_quota_window_num, config.controller_quota_window_size_seconds),
            limits.MAX_QUOTA_METERS,
        )

    def start(self) -> None:
        """Follow the declared quotas from now on."""
        self._declarations.follow(Kind.QUOTA, self._take)

    def _take(self, declared: Mapping[str, Any]) -> None:
        by_entity = decode_all(declared)
        self.table = QuotaTable(by_entity)
        if self._callback is not None:
            self._callback.take(by_entity)
        self._use(self if self.table.has_clients or self.table.groups or self.has_callback else None)
        self._begin_anew()

    @property
    def has_callback(self) -> bool:
        """Whether a user's class decides the quota of each client."""
        return self._callback is not None

    def ask_callback(self) -> None:
        """Measure all clients again if the user's class says that limits have changed."""
        if self._callback is not None and self._callback.has_changed(self._services.metadata):
            self._begin_anew()

    def _begin_anew(self) -> None:
        self._forget()
        for connection in list(self._connections):
            if connection.mute is not None:
                connection.mute.end()

    def budget(self, principal: str, client_id: str | None) -> Budget | None:
        """The budget of a client; None if it has no quota at all."""
        key = (principal, client_id)
        try:
            return self._budgets[key]
        except KeyError:
            if len(self._budgets) >= limits.MAX_QUOTA_BUDGETS:
                self._budgets.clear()
        found = self._budgets[key] = self._look_up(principal, client_id or "")
        return found

    def now_ms(self) -> float:
        return self._services.clock.monotonic_ms()

    def consumer_meters(self, budget: Budget, host: str) -> tuple[Meter, ...]:
        """The meters that pay for the fetches of a client at an address: its own quota, and the quotas of its groups."""
        own = () if budget.consumer is None else (budget.consumer,)
        if not self.table.groups:
            return own
        return (*own, *filter(None, map(self._group_meter, self.members.groups_of(budget.client_id, host))))

    def _group_meter(self, group_id: str) -> Meter | None:
        bound = self.table.group_rate(group_id)
        if bound is None or bound == inf:
            return None
        return self.meters.get(MeterKey(OF_GROUP, "", group_id), bound, self.now_ms())

    def window_bytes(self, meters: tuple[Meter, ...]) -> int:
        """The most bytes that one fetch gets: the bytes of a window, so that other clients of the quota need not wait long."""
        return max(min([MAX_INT, *(int(meter.bound * self._window_s) for meter in meters)]), 1)

    def expire(self) -> None:
        """Forget the meters of clients that have been away for long."""
        if self.meters.expire(self.now_ms()):
            self._forget()

    def _forget(self) -> None:
        """Forget the budgets of all clients and connections."""
        self._budgets.clear()
        for connection in self._connections:
            connection.budget = None
            connection.forget_learnt()

    def close(self, connection: Connection) -> None:
        """Give back what the closed connection has paid for and not received."""
        paid, connection.paid = connection.paid, None
        if paid is not None:
            paid.give_back(self.now_ms())

    def _look_up(self, principal: str, client_id: str) -> Budget | None:
        producer, consumer, request, mutations = (
            self._meter(key, principal, client_id)
            for key in (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
        )
        if producer is consumer is request is mutations is None and not self.table.groups:
            return None
        return Budget(
            client_id,
            producer=producer,
            consumer=consumer,
            request=request,
            mutations=mutations,
            longest_ms=self._window_s * 1000,
        )

    def _meter(self, key: str, principal: str, client_id: str) -> Meter | None:
        limit = self._limit(key, principal, client_id)
        if limit is None or limit[1] == inf:
            return None
        return self.meters.get(*limit, self.now_ms())

    def _limit(self, key: str, principal: str, client_id: str) -> tuple[MeterKey, float] | None:
        """The key of the clients that share a quota, and its limit."""
        if self._callback is not None:
            return self._callback.limit(key, principal, client_id)
        applied = self.table.find(key, principal.partition(":")[2], client_id)
        return None if applied is None else (MeterKey(key, applied.user, applied.client_id), applied.bound)
