"""One broker of ours for all scenarios: they keep to names of their own, as they do on Kafka's node.

A scenario that changes the settings of brokers has a broker to itself, so that the others may come before or after it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.testing import Broker
from tests.differential.runner import AS_KAFKA_4, CONFIG
from tests.differential.talk import Address
from tests.retention import NO_RETENTION_CHECKS

CHANGES_BROKERS = frozenset({"change-broker-configs", "a-broker-wide-setting-shows-in-topics"})


@pytest.fixture(scope="session")
def shared_address() -> Iterator[Address]:
    with Broker(config=CONFIG | AS_KAFKA_4 | NO_RETENTION_CHECKS) as broker:
        yield Address.of(broker.bootstrap_servers)


@pytest.fixture
def address(name: str, request: pytest.FixtureRequest) -> Iterator[Address]:
    """Where the scenario `name` finds its broker."""
    if name in CHANGES_BROKERS:
        with Broker(config=CONFIG | AS_KAFKA_4 | NO_RETENTION_CHECKS) as broker:
            yield Address.of(broker.bootstrap_servers)
    else:
        yield request.getfixturevalue("shared_address")
