"""The TLS settings of each listener of a broker, and their changes at run time.

Owns the context and the mapping of names of every TLS listener, and the context for connections to other brokers. A change of settings or
files makes new contexts for new connections; open connections keep theirs.

Rules
  1. At the start every fault is a ConfigError. Later, `check` refuses unusable settings when a client requests them, and unreadable files
     leave the earlier context in use.
  2. A new certificate must have the names of the old one, unless `ssl.allow.dn.changes` and `ssl.allow.san.changes` allow others, as in
     Kafka. The reason is that clients check the name, and no client could correct the settings of a broker that it cannot reach.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from barnabas.config.listeners import has_tls
from barnabas.config.sasl import setting
from barnabas.errors import ConfigError
from barnabas.plugins.principals import Principal
from barnabas.security.principals import NoMatchingRule, PrincipalRules
from barnabas.server.cluster.peers import inter_broker_endpoint
from barnabas.tls.contexts import client_context, server_context
from barnabas.tls.names import alternative_names_of, subject_of, values_of_subject
from barnabas.tls.pem import certificates_in
from barnabas.tls.settings import ClientAuth, TlsSettings, server_settings
from barnabas.tls.source import ContextSource
from barnabas.tls.stores import read_keys

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig
    from barnabas.server.authentication.principals import PrincipalNaming
    from barnabas.server.connection import Connection
    from barnabas.server.metrics import Metrics

logger = logging.getLogger(__name__)


class ListenerTls:
    """The TLS settings of one listener; raises ConfigError."""

    def __init__(
        self,
        settings: TlsSettings,
        rules: PrincipalRules,
        groups_attribute: str | None,
        metrics: Metrics,
        naming: PrincipalNaming,
    ) -> None:
        self.source = ContextSource(settings, server_context)
        self._rules = rules
        self._groups_attribute = groups_attribute
        self.metrics = metrics
        self._naming = naming

    @property
    def context(self) -> ssl.SSLContext:
        return self.source.context

    def name(self, connection: Connection, certificate: bytes | None) -> None:
        """Set the principal for a client certificate (DER), or for none; raises NoMatchingRule and PrincipalRefused."""
        if self._naming.names(connection.listener):
            subject = "" if certificate is None else subject_of(certificate)
            self._naming.of_tls(connection, certificate, subject, self._default(certificate, subject))
        elif certificate is not None:
            connection.principal = f"User:{self._rules.name_of(subject_of(certificate))}"
            connection.groups = tuple(f"Group:{name}" for name in self._groups_of(certificate))

    def _default(self, certificate: bytes | None, subject: str) -> Principal | None:
        if certificate is None:
            return Principal("ANONYMOUS")
        try:
            return Principal(self._rules.name_of(subject), groups=self._groups_of(certificate))
        except NoMatchingRule:
            return None

    def _groups_of(self, certificate: bytes) -> tuple[str, ...]:
        """The groups of the certificate's owner."""
        return () if self._groups_attribute is None else tuple(values_of_subject(certificate, self._groups_attribute))


class BrokerTls:
    """All TLS of one broker."""

    def __init__(self, metrics: Metrics, naming: PrincipalNaming) -> None:
        self._metrics = metrics
        self._naming = naming
        self._listeners: dict[str, ListenerTls] = {}
        self._peers: ContextSource | None = None

    def open(self, config: BrokerConfig) -> None:
        """Make every context; raises ConfigError."""
        for endpoint in config.listener_endpoints:
            if has_tls(endpoint.protocol):
                settings = settings_of(config, endpoint.listener)
                rules = PrincipalRules(str(setting(config, "ssl.principal.mapping.rules", endpoint.listener)))
                attribute = setting(config, "ssl.principal.groups.attribute", endpoint.listener)
                groups_attribute = None if attribute is None else str(attribute)
                self._listeners[endpoint.listener] = ListenerTls(settings, rules, groups_attribute, self._metrics, self._naming)
        between = inter_broker_endpoint(config)
        if config.zookeeper_connect and has_tls(between.protocol):
            self._peers = ContextSource(settings_of(config, between.listener), client_context)

    @property
    def is_used(self) -> bool:
        return bool(self._listeners)

    def of(self, listener: str) -> ListenerTls:
        return self._listeners[listener]

    def for_peers(self) -> ssl.SSLContext:
        """The TLS context for connections to other brokers, if the listener between brokers has TLS."""
        assert self._peers is not None, "asked before `open`, or without TLS between brokers"
        return self._peers.context

    def check(self, config: BrokerConfig) -> None:
        """Check that the running broker can take these settings; raises ConfigError."""
        for listener, terms in self._listeners.items():
            settings = settings_of(config, listener)
            if settings != terms.source.settings:
                server_context(settings)
                check_names(config, terms.source.settings, settings)

    def update(self, config: BrokerConfig) -> None:
        """Take over changed settings; unusable ones are logged, and the old ones stay."""
        for change in self._changes(config):
            try:
                change()
            except ConfigError as error:
                logger.error("event=tls-settings-not-taken note='the old ones stay' reason=%r", str(error))

    def _changes(self, config: BrokerConfig) -> Sequence[Callable[[], bool]]:
        changes = [partial(_change, terms.source, config, listener) for listener, terms in self._listeners.items()]
        if self._peers is not None:
            changes.append(partial(_change, self._peers, config, inter_broker_endpoint(config).listener))
        return changes

    def refresh(self) -> None:
        """Reload changed files."""
        for listener, terms in self._listeners.items():
            if terms.source.refresh():
                logger.info("event=certificates-reloaded listener=%s", listener)
        if self._peers is not None:
            self._peers.refresh()


def settings_of(config: BrokerConfig, listener: str) -> TlsSettings:
    """The TLS settings of a listener.

    A listener with SASL requests certificates only if `ssl.client.auth` is set for that listener alone (KIP-684).
    """
    settings = server_settings(listener, lambda name: setting(config, name, listener))
    protocol = next((each.protocol for each in config.listener_endpoints if each.listener == listener), "")
    if protocol == "SASL_SSL" and f"{settings.prefix}ssl.client.auth" not in config.texts:
        return replace(settings, client_auth=ClientAuth.NONE)
    return settings


def check_names(config: BrokerConfig, before: TlsSettings, after: TlsSettings) -> None:
    """Raise ConfigError if a new certificate has other names than the old one and the settings do not allow this."""
    old, new = _certificate(before), _certificate(after)
    if old is None or new is None:
        return
    key = after.key("keystore.location")
    shown = after.keystore_location or "(text)"
    if not config.ssl_allow_dn_changes and subject_of(old) != subject_of(new):
        allowed = f"a certificate with the distinguished name of the old one ({subject_of(old)}); this one is {subject_of(new)}"
        raise ConfigError(key, shown, allowed)
    missing = alternative_names_of(old) - alternative_names_of(new)
    if not config.ssl_allow_san_changes and missing:
        raise ConfigError(
            key, shown, f"a certificate with all alternative names of the old one; {', '.join(sorted(missing))} is missing"
        )


def _certificate(settings: TlsSettings) -> bytes | None:
    """The first certificate of a key store; None if the store is not readable any more."""
    try:
        keys = read_keys(settings)
    except ConfigError:
        return None
    return None if keys is None else ssl.PEM_cert_to_DER_cert(certificates_in(keys.chain)[0])


def _change(source: ContextSource, config: BrokerConfig, listener: str) -> bool:
    return source.change(settings_of(config, listener))
