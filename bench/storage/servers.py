"""The two servers with settings of a case, and a data folder that the case may read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from barnabas.testing import Broker
from bench.servers import Kafka

OURS, THEIRS = "barnabas", Kafka.name


class Ours(Broker):
    """A barnabas broker in a process of its own."""

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

    def cleaner_cpu_s(self) -> float:
        """The CPU seconds of its cleaner processes so far, including their start."""
        children = Path(f"/proc/{self.pid}/task").glob("*/children")
        pids = [pid for path in children for pid in path.read_text().split()]
        return sum(_cpu_s(Path("/proc", pid)) for pid in pids if b"cleaning" in Path("/proc", pid, "cmdline").read_bytes())


class Theirs(Kafka):
    """One KRaft node, with Kafka's defaults except for the settings of the case."""

    def __init__(self, config: Mapping[str, str] | None = None) -> None:
        super().__init__(config or {})

    def cleaner_cpu_s(self) -> float:
        """The CPU seconds of its cleaner threads so far, without those of the garbage collector and the compiler."""
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(_cpu_s(path) for path in threads if (path / "comm").read_text().startswith("kafka-log-clean"))


AnyServer = Ours | Theirs
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def _cpu_s(path: Path) -> float:
    """The CPU seconds of a process or thread; `path` is its folder under /proc."""
    fields = (path / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def partition_folder(server: AnyServer, topic: str, partition: int) -> Path:
    return Path(server.data_dir) / f"{topic}-{partition}"
