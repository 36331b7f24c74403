"""The pytest fixtures `kafka` and `kafka_session`, there for everyone who has barnabas installed.

pytest imports this module in every run, so it imports nothing but pytest itself; the broker is loaded by the
first test that asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker


@pytest.fixture
def kafka() -> Iterator[Broker]:
    """A broker for this test alone: empty, on its own port, gone afterwards."""
    from barnabas.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_session() -> Iterator[Broker]:
    """One broker for the whole run: tests share it and keep apart by the names of their topics and groups."""
    from barnabas.testing.broker import Broker

    with Broker() as broker:
        yield broker
