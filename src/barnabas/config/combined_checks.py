"""Checks settings against each other: bounds of groups with values between them, and the settings that the log-ins of a
listener need."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from barnabas.config.kerberos import kerberos_of
from barnabas.config.listeners import Endpoint
from barnabas.config.oauth import oauth_of
from barnabas.config.sasl import GSSAPI, OAUTHBEARER, ListenerSettings, is_sasl, mechanisms_of
from barnabas.errors import ConfigError

NOT_ABOVE = (
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    *(
        pair
        for name in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
        for pair in (
            (f"group.consumer.min.{name}", f"group.consumer.max.{name}"),
            (f"group.consumer.min.{name}", f"group.consumer.{name}"),
            (f"group.consumer.{name}", f"group.consumer.max.{name}"),
        )
    ),
)


def check_groups(value_of: Callable[[str], int]) -> None:
    """Raises ConfigError if the settings of groups contradict each other; Kafka does not start with such settings either.

    Args:
        value_of: function from a broker key to its value.
    """
    for low, high in NOT_ABOVE:
        minimum, maximum = value_of(low), value_of(high)
        if minimum > maximum:
            raise ConfigError(low, str(minimum), f"at most {high} ({maximum})")
    interval, session = value_of("group.consumer.heartbeat.interval.ms"), value_of("group.consumer.session.timeout.ms")
    if interval >= session:
        raise ConfigError(
            "group.consumer.heartbeat.interval.ms", str(interval), f"less than group.consumer.session.timeout.ms ({session})"
        )


def check_registry_login(source: str, user_info: str | None) -> None:
    """Raises ConfigError if the log-in to the schema registry has no user."""
    if source == "USER_INFO" and (not user_info or ":" not in user_info):
        raise ConfigError(
            "confluent.basic.auth.user.info", "[hidden]", "user:password, since the credentials source is USER_INFO"
        )


def check_logins(settings: ListenerSettings, listeners: Iterable[Endpoint]) -> None:
    """Raises ConfigError if a listener requires a log-in with which no client could succeed."""
    for endpoint in filter(is_sasl, listeners):
        mechanisms = mechanisms_of(settings, endpoint.listener)
        if OAUTHBEARER in mechanisms:
            oauth_of(settings, endpoint.listener)
        if GSSAPI in mechanisms:
            kerberos_of(settings, endpoint.listener)
