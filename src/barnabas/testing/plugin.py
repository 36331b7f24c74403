"""The pytest fixtures `kafka` and `kafka_session`, available wherever barnabas is installed.

pytest imports this module in every run, so it imports only pytest itself; the first test that uses a fixture loads the broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker


@pytest.fixture
def kafka() -> Iterator[Broker]:
    """A broker for this test alone: empty, on its own port, removed afterwards."""
    from barnabas.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_session() -> Iterator[Broker]:
    """One broker for the whole run: tests share it and must use different names of topics and groups."""
    from barnabas.testing.broker import Broker

    with Broker() as broker:
        yield broker
