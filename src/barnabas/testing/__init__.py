"""A real broker for the tests of users of barnabas, for a `with` block or for a test.

    from barnabas.testing import Broker

    with Broker() as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})

With pytest you import nothing: the plugin provides the fixtures `kafka` and `kafka_session`.

The package loads its modules at their first use, because pytest imports it in every run if barnabas is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker, BrokerFailed

__all__ = ["Broker", "BrokerFailed"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from barnabas.testing import broker

    value: object = getattr(broker, name)
    return value
