"""A topic in a data folder behaves as every source, beside a running broker and without one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.tables.folder_source import FolderSource
from barnabas.testing import Broker
from tests.retention import NO_RETENTION_CHECKS
from tests.tables.sources import SourceConformance
from tests.tables.writing import BrokerWriter


class FolderHouse(BrokerWriter):
    """Topics of a broker, read from its folders."""

    def __init__(self, bootstrap_servers: str, folders: list[Path]) -> None:
        super().__init__(bootstrap_servers)
        self._folders = folders

    def source(self, topic: str) -> FolderSource:
        return FolderSource(topic, self._folders)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(NO_RETENTION_CHECKS, log_dirs=2) as running:
        yield running


class TestFolderSource(SourceConformance):
    @pytest.fixture
    def house(self, broker: Broker) -> Iterator[FolderHouse]:
        house = FolderHouse(broker.bootstrap_servers, broker.data_dirs)
        yield house
        house.close()
