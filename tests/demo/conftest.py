from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.testing import Broker

for module in ("aiokafka", "kafka", "matplotlib", "pandas", "pyspark"):
    pytest.importorskip(module)  # the demo needs the development extras


@pytest.fixture
def bootstrap() -> Iterator[str]:
    """The address of an empty broker."""
    with Broker() as broker:
        yield broker.bootstrap_servers
