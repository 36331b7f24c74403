"""A broker with its registry, for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.schemas.registry_client import RegistryClient
from barnabas.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def registry_url(broker: Broker) -> str:
    return broker.schema_registry_url


@pytest.fixture
def client(registry_url: str) -> Iterator[RegistryClient]:
    with RegistryClient(registry_url) as client:
        yield client
