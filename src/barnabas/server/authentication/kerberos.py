"""Contexts of GSS-API by the package `gssapi` (extra `kerberos`), which the broker imports only for a listener with Kerberos."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from barnabas.config.kerberos import RULES, KerberosSettings
from barnabas.errors import ConfigError
from barnabas.security.exchange import AuthenticationFailed
from barnabas.security.kerberos import BadRules, GssapiExchange, parse_rules, short_name


class AcceptingContext:
    """See `security.kerberos.Context`."""

    def __init__(self, credentials: Any) -> None:
        from gssapi import SecurityContext

        self._context = SecurityContext(creds=credentials, usage="accept")

    @property
    def complete(self) -> bool:
        return bool(self._context.complete)

    @property
    def initiator(self) -> str:
        return str(self._context.initiator_name)

    def step(self, token: bytes) -> bytes:
        from gssapi.raw.misc import GSSError

        try:
            return self._context.step(token) or b""
        except GSSError as error:
            raise AuthenticationFailed(f"a ticket that is refused: {error.maj_code:#x} {error.min_code:#x}") from error

    def wrap(self, message: bytes) -> bytes:
        return bytes(self._context.wrap(message, False).message)

    def unwrap(self, message: bytes) -> bytes:
        from gssapi.raw.misc import GSSError

        try:
            return bytes(self._context.unwrap(message).message)
        except GSSError as error:
            raise AuthenticationFailed("a message that was not wrapped by the client") from error


def acceptor(settings: KerberosSettings) -> Callable[[], GssapiExchange]:
    """A function that begins a log-in by Kerberos; raises ConfigError if the key tab is unusable."""
    from gssapi import Credentials, Name, NameType
    from gssapi.raw.misc import GSSError

    try:
        rules = parse_rules(settings.rules)
    except BadRules as error:
        raise ConfigError(RULES, ",".join(settings.rules), str(error)) from error
    if not os.access(settings.key_tab, os.R_OK):
        raise ConfigError("keyTab in sasl.jaas.config", settings.key_tab, "a file that can be read")
    try:
        name = Name(settings.principal, NameType.kerberos_principal)
        credentials = Credentials(usage="accept", name=name, store={"keytab": settings.key_tab})
    except GSSError as error:
        raise ConfigError("principal in sasl.jaas.config", settings.principal, f"one of the key tab ({error})") from error
    realm = settings.principal.rpartition("@")[2]
    return lambda: GssapiExchange(AcceptingContext(credentials), lambda principal: short_name(principal, rules, realm))
