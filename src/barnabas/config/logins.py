"""Whether anybody could log in to the listeners that ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.config.kerberos import kerberos_of
from barnabas.config.oauth import oauth_of
from barnabas.config.sasl import GSSAPI, OAUTHBEARER, is_sasl, mechanisms_of

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig


def check_logins(config: BrokerConfig) -> None:
    """Raises ConfigError where a listener asks for log-ins that nobody could do."""
    for endpoint in filter(is_sasl, config.listener_endpoints):
        mechanisms = mechanisms_of(config, endpoint.listener)
        if OAUTHBEARER in mechanisms:
            oauth_of(config, endpoint.listener)
        if GSSAPI in mechanisms:
            kerberos_of(config, endpoint.listener)
