"""The two servers with settings of a case, and a folder that the case may look into."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.kafka import VERSION, KafkaNode

from barnabas.testing import Broker

OURS, THEIRS = "barnabas", f"Apache Kafka {VERSION}"


class Ours(Broker):
    """A barnabas in a process of its own."""

    name = OURS

    def __init__(self, config: Mapping[str, str] | None = None) -> None:
        super().__init__(dict(config or {}), log_level="warning")
        self.ready_after_s = 0.0

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    @property
    def pid(self) -> int:
        found = super().pid
        assert found is not None, "it runs"
        return found


class Theirs(KafkaNode):
    """One KRaft node."""

    name = THEIRS

    def __init__(self, config: Mapping[str, str] | None = None) -> None:
        super().__init__(heap="1g", config=dict(config or {}))

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.bootstrap.rpartition(":")
        return host, int(port)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


AnyServer = Ours | Theirs


def partition_folder(server: AnyServer, topic: str, partition: int) -> Path:
    return Path(server.data_dir) / f"{topic}-{partition}"
