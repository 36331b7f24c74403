"""Checks settings of groups against each other: bounds, and values between them."""

from __future__ import annotations

from collections.abc import Callable

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
    """Raises ConfigError if they contradict each other; Kafka does not start with such settings either.

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
