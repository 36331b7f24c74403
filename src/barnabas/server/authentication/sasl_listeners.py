"""The SASL listeners of a broker: the log-ins that each requires, and the counts of all of them.

Owns the current settings of the listeners, the counts, and the penalties for addresses whose log-ins fail.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas import limits
from barnabas.cluster.metadata.declared import Kind
from barnabas.config.kerberos import kerberos_of
from barnabas.config.oauth import oauth_of
from barnabas.config.sasl import GSSAPI, OAUTHBEARER, SCRAM, is_sasl, mechanisms_of
from barnabas.errors import ConfigError
from barnabas.security.exchange import Exchange, Identity, NotYet
from barnabas.security.oauth import OAuthExchange
from barnabas.security.penalties import Penalties
from barnabas.security.plain import PlainExchange
from barnabas.security.scram import Credential, ScramExchange, unknown
from barnabas.security.tokens import TokenCredentials, usable
from barnabas.security.users import Patterns, find_credential
from barnabas.server.authentication.kerberos import acceptor
from barnabas.server.authentication.sasl_login import Counts, Login
from barnabas.server.authentication.token_rules import Providers

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig
    from barnabas.server.authentication.principals import PrincipalNaming
    from barnabas.server.connection import Connection
    from barnabas.server.services import Services


logger = logging.getLogger(__name__)


class SaslListener:
    """One listener with SASL.

    Args:
        sasl_listeners: all SASL listeners of the broker, with their shared parts.
        listener: the name of this listener.

    Raises:
        ConfigError: the settings are unusable.
    """

    def __init__(self, sasl_listeners: SaslListeners, listener: str, config: BrokerConfig) -> None:
        self._sasl_listeners = sasl_listeners
        mechanisms = mechanisms_of(config, listener)
        self.mechanisms = mechanisms  # by name, in the order of the answer to clients
        self._check_token = sasl_listeners.providers.check_for(oauth_of(config, listener)) if OAUTHBEARER in mechanisms else None
        self._accept_ticket = acceptor(kerberos_of(config, listener)) if GSSAPI in mechanisms else None
        self.counts = sasl_listeners.counts
        self.penalties: Penalties = sasl_listeners.penalties
        self.monotonic_ms: Callable[[], float] = sasl_listeners.monotonic_ms
        self.max_request_bytes = config.socket_request_max_bytes
        self.max_login_bytes = config.sasl_server_max_receive_size

    def begin(self, mechanism: str) -> Exchange:
        """A new exchange of `mechanism`, for one log-in."""
        if mechanism in SCRAM:
            return ScramExchange(mechanism, self._finder(mechanism), self._sasl_listeners.new_nonce())
        if self._accept_ticket is not None and mechanism == GSSAPI:
            return self._accept_ticket()
        if self._check_token is not None and mechanism == OAUTHBEARER:
            return OAuthExchange(self._check_token)
        return PlainExchange(self.mechanisms[mechanism].users)

    def _finder(self, mechanism: str) -> Callable[[str, bool], tuple[Credential, Identity]]:
        def find(name: str, by_token: bool) -> tuple[Credential, Identity]:
            return (
                self._sasl_listeners.find_token(mechanism, name) if by_token else self._sasl_listeners.find_user(mechanism, name)
            )

        return find

    def lifetime_ms(self, mechanism: str, identity: Identity) -> int | None:
        """The lifetime in ms of a session that begins now; None if the session has no end."""
        most_ms = self.mechanisms[mechanism].max_reauth_ms
        ends = [most_ms] if most_ms > 0 else []
        if identity.expires_ms is not None:
            ends.append(max(0, identity.expires_ms - self._sasl_listeners.now_ms()))
        return min(ends, default=None)

    def prepare(self, missing: NotYet) -> asyncio.Future[None]:
        """Start to load the data that a log-in waits for; the future ends when the data is there."""
        return self._sasl_listeners.prepare(missing)

    def name(self, connection: Connection, mechanism: str, identity: Identity) -> None:
        """Set the principal of a connection; raises PrincipalRefused."""
        self._sasl_listeners.naming.of_login(connection, mechanism, identity)


class SaslListeners:
    """All SASL listeners of a broker; raises ConfigError if their settings are unusable."""

    def __init__(self, services: Services, naming: PrincipalNaming) -> None:
        self._services = services
        self._loop = services.loop
        self.counts = Counts()
        self.naming = naming
        self._patterns = Patterns()
        self._of_tokens = TokenCredentials(limits.MAX_DELEGATION_TOKENS)
        self.providers = Providers(services.loop, services.io_threads, services.clock.now_ms)
        delay_ms = services.config.connection_failed_authentication_delay_ms
        self.monotonic_ms = services.clock.monotonic_ms
        self.penalties: Penalties = Penalties(
            delay_ms, max_hosts=limits.MAX_PENALIZED_HOSTS, max_waiting=limits.MAX_WAITING_LOGINS
        )
        self._by_listener: dict[str, SaslListener] = {}
        self.update_config(services.config)

    def now_ms(self) -> int:
        return self._services.clock.now_ms()

    def new_nonce(self) -> str:
        return self._services.new_id().hex

    def find_user(self, mechanism: str, user: str) -> tuple[Credential, Identity]:
        return find_credential(self._services.metadata.declarations(Kind.USER), user, mechanism, self._patterns), Identity(user)

    def find_token(self, mechanism: str, token_id: str) -> tuple[Credential, Identity]:
        key = self._services.config.delegation_token_secret_key or ""
        token = usable(self._services.metadata.declarations(Kind.TOKEN), token_id, self.now_ms())
        if token is None or not key:
            return unknown(mechanism, token_id, key.encode()), Identity(token_id)
        owner = token.owner.partition(":")[2]
        return self._of_tokens.find(token_id, mechanism, key), Identity(owner, token.expires_ms, by_token=True)

    def prepare(self, missing: NotYet) -> asyncio.Future[None]:
        """Let a thread load the data that a log-in waits for."""
        return self._loop.run_in_executor(self._services.io_threads, missing.prepare)

    def open(self, connection: Connection) -> None:
        """Require a log-in of a new connection, if its listener has SASL."""
        sasl_listener = self._by_listener.get(connection.listener)
        if sasl_listener is not None:
            connection.login = Login(connection, sasl_listener, self._loop)

    def update_config(self, config: BrokerConfig) -> None:
        """Take over new settings for the next log-ins; connections that are logged in stay so.

        Raises:
            ConfigError: a listener's first settings are unusable. Unusable later settings change nothing.
        """
        for endpoint in filter(is_sasl, config.listener_endpoints):
            try:
                self._by_listener[endpoint.listener] = SaslListener(self, endpoint.listener, config)
            except ConfigError as error:
                if endpoint.listener not in self._by_listener:
                    raise
                logger.error("event=listener-not-reconfigured listener=%s error=%r", endpoint.listener, str(error))
