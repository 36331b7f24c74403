"""Kerberos tickets of a client (GSSAPI, RFC 4752), by the package `gssapi` of the extra `kerberos`.

Owns the source of tickets and the client's side of the exchange. The package is loaded only if GSSAPI is configured.

Rules
  1. Only `begin` may block: it waits for the key distribution centre. So code with an event loop calls it in a thread.
  2. The server proves its identity before the client trusts it. GSSAPI does not encrypt anything after the log-in: TLS does that.
  3. With a key tab, tickets are fetched and renewed when needed and stay in the memory of this process. Without one, they come
     from a cache that `kinit` fills.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from barnabas.client.errors import ConnectionFailed, LoginFailed
from barnabas.errors import ConfigError

if TYPE_CHECKING:
    from gssapi.raw.misc import GSSError

GSSAPI = "GSSAPI"
SERVICE = "sasl.kerberos.service.name"
NO_LAYER = 1
UNREACHABLE = (-1765328228) % 2**32  # KRB5_KDC_UNREACH: may be retried, like an unreachable broker


class Tickets(Struct, frozen=True):
    """A source of tickets.

    Args:
        service: the first part of the servers' principals, usually "kafka".
        key_tab, principal: those of the client; None for the tickets of a cache.
        cache: the cache; None for the one of the environment.
    """

    service: str
    key_tab: str | None = None
    principal: str | None = None
    cache: str | None = None

    def begin(self, host: str) -> Handshake:
        """Get a ticket for the service on a host and create the first token; may block.

        Raises:
            ConnectionFailed: no key distribution centre answers.
            LoginFailed: there is no ticket.
        """
        from gssapi import MechType, Name, NameType, RequirementFlag, SecurityContext
        from gssapi.raw.misc import GSSError

        flags = RequirementFlag.mutual_authentication | RequirementFlag.integrity | RequirementFlag.out_of_sequence_detection
        try:
            name = Name(f"{self.service}@{host}", NameType.hostbased_service)
            context = SecurityContext(name=name, creds=self._credentials(), flags=flags, mech=MechType.kerberos, usage="initiate")
            return Handshake(context, context.step() or b"", host)
        except GSSError as error:
            failure = ConnectionFailed if error.min_code == UNREACHABLE else LoginFailed
            raise failure(host, f"no ticket for the service {self.service} ({_reason(error)})") from None

    def _credentials(self) -> Any:
        from gssapi import Credentials, Name, NameType

        if self.key_tab is not None:
            name = Name(self.principal, NameType.kerberos_principal)
            store: dict[bytes | str, bytes | str] = {
                "client_keytab": self.key_tab,
                "ccache": f"MEMORY:{self.principal} {self.key_tab}",
            }
            return Credentials(usage="initiate", name=name, store=store)
        return Credentials(usage="initiate", store=None if self.cache is None else {"ccache": self.cache})


class Handshake:
    """One log-in that has begun.

    Args:
        context: the package's security context.
        first: its first token.
        server: the server's name in errors.
    """

    def __init__(self, context: Any, first: bytes, server: str) -> None:
        self._context = context
        self._first = first
        self._server = server

    def tokens(self) -> Generator[bytes, bytes, None]:
        """A generator that yields tokens to send and receives the answers. Raises LoginFailed if the server does not prove its
        identity."""
        from gssapi.raw.misc import GSSError

        context = self._context
        try:
            answer = yield self._first
            while not context.complete:
                answer = yield context.step(answer) or b""
            offered = context.unwrap(answer).message
            if len(offered) != 4 or not offered[0] & NO_LAYER:
                raise LoginFailed(self._server, "it requires wrapped messages after the log-in, which TLS replaces")
            yield context.wrap(bytes([NO_LAYER, 0, 0, 0]), False).message
        except GSSError as error:
            raise LoginFailed(self._server, f"it does not prove that it is the requested service ({_reason(error)})") from None


def tickets_from(options: Mapping[str, str], key: str = "sasl.jaas.config") -> Tickets:
    """The source of tickets in settings with the names of Kafka's clients, of librdkafka, or of a Krb5LoginModule's options.

    Args:
        key: the key of the login context, named in errors.

    Raises:
        ConfigError: the extra is not installed, the service is missing, or a key tab has no principal.
    """
    if find_spec("gssapi") is None:
        allowed = "a mechanism without GSSAPI, as long as its extra is not installed: pip install 'barnabas[kerberos]'"
        raise ConfigError("sasl.mechanism", GSSAPI, allowed)
    service = options.get(SERVICE) or options.get("serviceName")
    if not service:
        raise ConfigError(
            SERVICE, "", "the first part of the brokers' Kerberos names, as kafka, here or as serviceName of the login"
        )
    key_tab = (options.get("keyTab") or options.get("sasl.kerberos.keytab") or "").removeprefix("file:")
    principal = options.get("principal") or options.get("sasl.kerberos.principal")
    if key_tab and not principal:
        raise ConfigError(key, "[hidden]", "keyTab with principal, to select its key")
    return Tickets(service, key_tab or None, principal if key_tab else None, options.get("ticketCache") or None)


def _reason(error: GSSError) -> str:
    return "; ".join(error.get_all_statuses(error.min_code, False)) or f"{error.maj_code:#x} {error.min_code:#x}"
