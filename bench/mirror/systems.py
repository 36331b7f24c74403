"""The measured copiers, each between two brokers of barnabas: a link of the target broker, and a process of MirrorMaker 2."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from tools.kafka import java

from barnabas.cli.connection import Connection
from barnabas.cli.mirror_requests import alter_link
from barnabas.cli.resources import Change, Operation
from bench.peers.process import OwnProcess, Process
from bench.servers import Barnabas

LINK = "bench"
TOPICS = "bench-.*"
JVM = ("-Xmx2g", "-Xms256m")  # as Kafka's own script has it
TASKS = 4
BATCH_BYTES = 512 * 1024


class Copier(Protocol):
    """Copies topics whose names begin with `bench-` while it is entered."""

    name: str

    def __init__(self, source: Barnabas, target: Barnabas) -> None: ...

    @property
    def pids(self) -> Sequence[int]:
        """Processes besides the two brokers."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


class Ours:
    """A mirror link; it ends with the target."""

    name = "barnabas"
    pids: Sequence[int] = ()

    def __init__(self, source: Barnabas, target: Barnabas) -> None:
        self._source, self._target = source.bootstrap, target.bootstrap

    def __enter__(self) -> Self:
        settings = {"bootstrap.servers": self._source, "topics": TOPICS}
        with Connection(self._target).wire() as wire:
            alter_link(wire, LINK, [Change(key, Operation.SET, value) for key, value in settings.items()])
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with Connection(self._target).wire() as wire:
            alter_link(wire, LINK, [Change("paused", Operation.SET, "true")])


class MirrorMaker(OwnProcess):
    """`connect-mirror-maker` with large batches, and with the names of the source."""

    name = "MirrorMaker 2"

    def __init__(self, source: Barnabas, target: Barnabas) -> None:
        super().__init__()
        self._source, self._target = source.bootstrap, target.bootstrap

    def _settings(self) -> dict[str, str]:
        internal = ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic")
        stores = ("config.storage", "offset.storage", "status.storage")
        return {
            "clusters": "source, target",
            "source.bootstrap.servers": self._source,
            "target.bootstrap.servers": self._target,
            "source->target.enabled": "true",
            "source->target.topics": TOPICS,
            "target->source.enabled": "false",
            "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
            "replication.factor": "1",
            **{f"{name}.replication.factor": "1" for name in (*internal, *stores)},
            "tasks.max": str(TASKS),
            "source.consumer.fetch.max.bytes": "52428800",
            "source.consumer.max.partition.fetch.bytes": "4194304",
            "source.consumer.max.poll.records": "5000",
            "target.producer.batch.size": str(BATCH_BYTES),
            "target.producer.linger.ms": "5",
        }

    def __enter__(self) -> Self:
        self._running = Process("mirror-maker")
        settings = self.process.folder / "mm2.properties"
        settings.write_text("".join(f"{key}={value}\n" for key, value in self._settings().items()))
        main = "org.apache.kafka.connect.mirror.MirrorMaker"
        self._running.start(java(main, str(settings), jvm=JVM, jars="frameworks"))
        return self


COPIERS: tuple[type[Copier], ...] = (Ours, MirrorMaker)
