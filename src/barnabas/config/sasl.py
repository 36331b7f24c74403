"""The SASL mechanisms of a listener and the settings of each.

Rules
  1. A setting of a listener and mechanism (`listener.name.x.plain.sasl.jaas.config`) overrides the listener's
     (`listener.name.x.sasl.jaas.config`), and that overrides the broker's (`sasl.jaas.config`).
  2. The class of a login context decides its mechanism. So one text may contain the contexts of several mechanisms; Kafka
     refuses such a text. A text that Kafka accepts has the same meaning here.
  3. No error contains a value of a login context.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from barnabas.config import definitions, jaas
from barnabas.config.config_key import Value
from barnabas.config.listeners import Endpoint
from barnabas.errors import ConfigError

GSSAPI, PLAIN, OAUTHBEARER = "GSSAPI", "PLAIN", "OAUTHBEARER"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = (PLAIN, *SCRAM, OAUTHBEARER, GSSAPI)
LOGIN_MODULES = {
    PLAIN: "PlainLoginModule",
    SCRAM[0]: "ScramLoginModule",
    SCRAM[1]: "ScramLoginModule",
    OAUTHBEARER: "OAuthBearerLoginModule",
    GSSAPI: "Krb5LoginModule",
}
USER_OPTION = "user_"


class ListenerSettings(Protocol):
    """The source of the settings of single listeners: a BrokerConfig, with an attribute for each key that applies to all
    listeners."""

    @property
    def texts(self) -> Mapping[str, str]: ...


class Mechanism(NamedTuple):
    """One mechanism on one listener.

    Args:
        options: the options of its login context; empty if there is none.
    """

    name: str
    options: dict[str, str]
    max_reauth_ms: int

    @property
    def users(self) -> dict[str, str]:
        """Passwords by user, from options like `user_alice="..."`."""
        return {key.removeprefix(USER_OPTION): value for key, value in self.options.items() if key.startswith(USER_OPTION)}


def is_sasl(endpoint: Endpoint) -> bool:
    return endpoint.protocol.startswith("SASL_")


def mechanisms_of(settings: ListenerSettings, listener: str) -> dict[str, Mechanism]:
    """The mechanisms of a listener by name, in the order of the setting; raises ConfigError."""
    names = setting(settings, "sasl.enabled.mechanisms", listener)
    assert isinstance(names, tuple)
    found = {}
    for name in names:
        if name not in MECHANISMS:
            raise ConfigError("sasl.enabled.mechanisms", name, f"mechanisms out of {', '.join(MECHANISMS)}")
        options = login_options(settings, name, listener)
        reauth_ms = setting(settings, "connections.max.reauth.ms", listener, name)
        assert isinstance(reauth_ms, int)
        mechanism = found[name] = Mechanism(name, options or {}, reauth_ms)
        if name == PLAIN and not mechanism.users:
            wanted = 'the users of PLAIN, as ...PlainLoginModule required user_alice="password";'
            raise ConfigError(f"listener.name.{listener.lower()}.plain.sasl.jaas.config", "[hidden]", wanted)
    if not found:
        raise ConfigError("sasl.enabled.mechanisms", "", f"at least one of {', '.join(MECHANISMS)}")
    return found


def login_options(settings: ListenerSettings, mechanism: str, listener: str) -> dict[str, str] | None:
    """The options of the login context for a mechanism; None if there is none. Raises ConfigError."""
    text = setting(settings, "sasl.jaas.config", listener, mechanism)
    if text is None:
        return None
    return options_for(mechanism, str(text))


def options_for(mechanism: str, text: str) -> dict[str, str] | None:
    """The options of a mechanism's login context in a text that was checked before."""
    return next((dict(c.options) for c in jaas.parse(text) if c.name == LOGIN_MODULES.get(mechanism)), None)


def setting(settings: ListenerSettings, name: str, listener: str, mechanism: str | None = None) -> Value:
    """The value of a key for a listener, and for a mechanism there; raises ConfigError."""
    key = definitions.BROKER[name]
    prefix = f"listener.name.{listener.lower()}."
    prefixes = [prefix] if mechanism is None else [f"{prefix}{mechanism.lower()}.", prefix]
    for text in (settings.texts.get(f"{each}{name}") for each in prefixes):
        if text is not None:
            return key.read(text)
    value: Value = getattr(settings, key.attribute)
    return value
