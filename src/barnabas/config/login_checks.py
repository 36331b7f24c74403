"""Checks that log-in is possible on the listeners that require it."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.config.kerberos import kerberos_of
from barnabas.config.listeners import Endpoint
from barnabas.config.oauth import oauth_of
from barnabas.config.sasl import GSSAPI, OAUTHBEARER, ListenerSettings, is_sasl, mechanisms_of


def check_logins(settings: ListenerSettings, listeners: Iterable[Endpoint]) -> None:
    """Raises ConfigError if a listener requires a log-in with which no client could succeed."""
    for endpoint in filter(is_sasl, listeners):
        mechanisms = mechanisms_of(settings, endpoint.listener)
        if OAUTHBEARER in mechanisms:
            oauth_of(settings, endpoint.listener)
        if GSSAPI in mechanisms:
            kerberos_of(settings, endpoint.listener)
