"""The principal of a connection, if a user's class decides it (`principal.builder.class`).

The broker calls the class once for a connection, and at each further log-in. An exception of the class refuses the connection.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.errors import BarnabasError
from barnabas.plugins.base import describe
from barnabas.plugins.principals import (
    AuthenticationContext,
    PlaintextContext,
    Principal,
    PrincipalBuilder,
    SaslContext,
    TlsContext,
)

if TYPE_CHECKING:
    from barnabas.security.exchange import Identity
    from barnabas.server.connection import Connection

logger = logging.getLogger(__name__)


class PrincipalRefused(BarnabasError):
    """A principal builder failed, or returned no principal."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"the principal builder named nobody: {self.reason}"


class PrincipalNaming:
    """Calls the principal builders of a broker.

    Args:
        builders: by listener.
        protocols: security protocols by listener.
    """

    def __init__(self, builders: Mapping[str, PrincipalBuilder], protocols: Mapping[str, str]) -> None:
        self._builders = builders
        self._protocols = protocols

    def names(self, listener: str) -> bool:
        """Whether a builder decides the principals of this listener."""
        return listener in self._builders

    def of_plaintext(self, connection: Connection) -> str | None:
        """Set the principal of a new plaintext connection. Returns a reason to refuse the connection, or None."""
        if not self._builders or self._protocols.get(connection.listener) != "PLAINTEXT" or not self.names(connection.listener):
            return None
        try:
            self._name(connection, PlaintextContext(*self._known(connection)))
        except PrincipalRefused as error:
            return str(error)
        return None

    def of_tls(self, connection: Connection, certificate: bytes | None, subject: str, default: Principal | None) -> None:
        """Set the principal of a TLS connection, with or without a client certificate; raises PrincipalRefused."""
        self._name(connection, TlsContext(*self._known(connection), certificate, subject, default))

    def of_login(self, connection: Connection, mechanism: str, identity: Identity) -> None:
        """Set the principal after a log-in; raises PrincipalRefused."""
        if self.names(connection.listener):
            self._name(connection, SaslContext(*self._known(connection), mechanism, identity.user, identity.groups))
        else:
            connection.principal = f"User:{identity.user}"
            connection.groups = tuple(f"Group:{name}" for name in identity.groups)

    def _known(self, connection: Connection) -> tuple[str, str, str]:
        return connection.listener, connection.peer_host, self._protocols[connection.listener]

    def _name(self, connection: Connection, context: AuthenticationContext) -> None:
        try:
            principal = self._builders[connection.listener].build(context)
        except Exception as error:  # user code may raise anything
            logger.debug("event=principal-builder-failed peer=%s", connection.peer, exc_info=error)
            raise PrincipalRefused(describe(error)) from error
        if not isinstance(principal, Principal):
            raise PrincipalRefused(f"build returned {type(principal).__name__} and no Principal")
        connection.principal = str(principal)
        connection.groups = tuple(f"Group:{name}" for name in principal.groups)
