"""The settings of a listener with Kerberos (GSSAPI): its key tab, its own principal, and the rules that map names to users."""

from __future__ import annotations

from importlib.util import find_spec
from typing import NamedTuple

from barnabas.config.sasl import GSSAPI, ListenerSettings, login_options, setting
from barnabas.errors import ConfigError

RULES = "sasl.kerberos.principal.to.local.rules"


class KerberosSettings(NamedTuple):
    """The settings of one listener; the principal includes its realm."""

    key_tab: str
    principal: str
    rules: tuple[str, ...]


def kerberos_of(settings: ListenerSettings, listener: str) -> KerberosSettings:
    """The settings with which a listener accepts tickets; raises ConfigError."""
    if find_spec("gssapi") is None:
        allowed = "mechanisms without GSSAPI, as long as its extra is not installed: pip install 'barnabas[kerberos]'"
        raise ConfigError("sasl.enabled.mechanisms", GSSAPI, allowed)
    options = login_options(settings, GSSAPI, listener) or {}
    key_tab, principal = options.get("keyTab", "").removeprefix("file:"), options.get("principal", "")
    if not key_tab or "@" not in principal:
        key = f"listener.name.{listener.lower()}.gssapi.sasl.jaas.config"
        raise ConfigError(key, "[hidden]", "a Krb5LoginModule with keyTab, and principal with its realm")
    rules = setting(settings, RULES, listener)
    assert isinstance(rules, tuple)
    return KerberosSettings(key_tab, principal, rules)
