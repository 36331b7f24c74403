"""TLS of the services' own listeners, and of their connections to other instances of the same service.

Keys have the names of Kafka's broker with the prefix `listener.`: `listener.ssl.keystore.location`.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import replace

from barnabas.errors import ConfigError
from barnabas.security.principals import KEY, PrincipalRules
from barnabas.tls.contexts import client_context, server_context
from barnabas.tls.settings import ClientAuth, TlsSettings, client_settings, server_settings
from barnabas.tls.source import ContextSource

PREFIX = "listener."
CLIENT_AUTH = f"{PREFIX}ssl.client.auth"
LISTS = frozenset({"ssl.enabled.protocols", "ssl.cipher.suites"})


def client_auth(settings: Mapping[str, str]) -> ClientAuth:
    """Whether callers must or may present certificates; raises ConfigError."""
    text = settings.get(CLIENT_AUTH, "none").strip().lower()
    try:
        return ClientAuth(text)
    except ValueError:
        raise ConfigError(CLIENT_AUTH, text, f"one of {', '.join(each.value for each in ClientAuth)}") from None


def listener_tls(settings: Mapping[str, str]) -> TlsSettings:
    """The settings of an https listener; raises ConfigError."""

    def value_of(key: str) -> object:
        text = settings.get(PREFIX + key)
        if key in LISTS:
            return tuple(word.strip() for word in (text or "").split(",") if word.strip()) or None
        return text

    asked = client_auth(settings)
    return server_settings("", lambda key: asked.value if key == "ssl.client.auth" else value_of(key), prefix=PREFIX)


def principal_rules(settings: Mapping[str, str]) -> PrincipalRules:
    """The rules that map the name in a caller's certificate to a principal; raises ConfigError."""
    try:
        return PrincipalRules(settings.get(PREFIX + KEY, "DEFAULT"))
    except ConfigError as error:
        raise ConfigError(PREFIX + KEY, error.value, error.allowed) from None


def listening_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context of a listener. Each handshake uses the certificate that is in the files at that time. Raises ConfigError."""
    source = ContextSource(settings, server_context)

    def take_renewed(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        source.refresh()
        connection.context = source.context

    source.context.sni_callback = take_renewed
    return source.context


def peers_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    """The context of connections to other instances: they trust the authorities of the listener (without these, those of the
    client settings), and present the listener's certificate. Raises ConfigError."""
    own = listener_tls(settings)
    trusting = own if own.truststore_location or own.truststore_certificates else client_settings(settings)
    return client_context(
        replace(
            own, check_host_name=True, truststore_type=trusting.truststore_type, truststore_location=trusting.truststore_location,
            truststore_password=trusting.truststore_password, truststore_certificates=trusting.truststore_certificates,
        )
    )  # fmt: skip
