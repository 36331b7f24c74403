"""One broker of ours for all scenarios: they keep to names of their own, as they do on Kafka's node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.testing import Broker
from tests.differential.runner import CONFIG
from tests.differential.talk import Address


@pytest.fixture(scope="session")
def address() -> Iterator[Address]:
    with Broker(config=CONFIG) as broker:
        yield Address.of(broker.bootstrap_servers)
