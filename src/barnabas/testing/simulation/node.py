"""A machine with a broker, which can be started, stopped, killed or cut off from power; its disk and its metadata stay.

Owns the process that runs on it now, if there is one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from uuid import UUID

from msgspec import Struct

from barnabas.cluster.store.memory import MemoryStore, MemoryTree
from barnabas.config.broker import BrokerConfig
from barnabas.server.broker import Broker
from barnabas.server.environment import Environment
from barnabas.storage import checkpoints
from barnabas.storage.files import Files
from barnabas.storage.segment import ABORTED_SUFFIX, INDEX_SUFFIX, SNAPSHOT_SUFFIX, TIME_INDEX_SUFFIX
from barnabas.testing.simulation.disk import Disk
from barnabas.testing.simulation.disk_faults import Faults
from barnabas.testing.simulation.ensemble import HOST, Ensemble
from barnabas.testing.simulation.files import FaultyFiles
from barnabas.testing.simulation.loop import VirtualExecutor, VirtualLoop, World, new_loop
from barnabas.testing.simulation.simulated_cleaner import SimulatedCleaner

PORT = 9092
UUID_BITS = 128
MADE_AGAIN = (  # name endings of files that a broker can rebuild
    checkpoints.RECOVERY_POINTS,
    checkpoints.HIGH_WATERMARKS,
    checkpoints.CLEANED_OFFSETS,
    checkpoints.LEADER_EPOCHS,
    INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    ABORTED_SUFFIX,
    SNAPSHOT_SUFFIX,
)
TORN_OF_ALL = 0.05  # share of such files torn in a power cut; small, so that most cuts leave all of them whole


class Process(Struct):
    """A running broker with its loop and files; all of them end with the process."""

    loop: VirtualLoop
    files: FaultyFiles
    store: MemoryStore
    broker: Broker
    cleaner: SimulatedCleaner


class Node:
    """One machine.

    Args:
        number: the broker's id, and part of the machine's address.
        properties: the broker's settings, without its address and folders.
        ensemble: the ZooKeeper that the brokers of a cluster share; a single one has a store of its own.
        host: the machine's address; broker-NUMBER if empty.
        directories: log directories; the first has the metadata.
        report: called with errors that must not happen.
        wrap_files: wraps the broker's files; used by canaries.
        wrap_cleaner_files: wraps the cleaner's files.
    """

    def __init__(
        self,
        world: World,
        number: int,
        properties: Mapping[str, str],
        report: Callable[[str], None],
        *,
        ensemble: Ensemble | None = None,
        host: str = "",
        directories: int = 1,
        wrap_files: Callable[[FaultyFiles], Files] = lambda files: files,
        wrap_cleaner_files: Callable[[FaultyFiles], FaultyFiles] = lambda files: files,
    ) -> None:
        self.world = world
        self.number = number
        self.host = host or f"broker-{number}"
        self.directories = [Path(f"/disk-{index}") for index in range(directories)]
        self.disk = self._new_disk()
        self.faults = Faults()
        self.process: Process | None = None
        self.starts = 0
        self._boots = 1
        self._tree = MemoryTree()
        self._ensemble = ensemble
        self._report = report
        self._wrap_files = wrap_files
        self._wrap_cleaner_files = wrap_cleaner_files
        own = {
            "listeners": f"PLAINTEXT://{self.host}:{PORT}",
            "log.dirs": ",".join(map(str, self.directories)),
            "node.id": str(number),
            **({"zookeeper.connect": f"{HOST}:2181"} if ensemble is not None else {}),
        }
        self.config, _ = BrokerConfig.from_properties({**properties, **own})

    @property
    def address(self) -> str:
        return f"{self.host}:{PORT}"

    def start(self) -> asyncio.Task[None]:
        """Start a process; the task is done when the broker serves."""
        assert self.process is None, "one process at a time"
        self.starts += 1
        self.world.epoch += 1
        world = self.world
        loop = new_loop(world, f"{self.host}#{self.starts}", self.host, self._report)
        files = self._open_files("disk")
        cleaner = SimulatedCleaner(
            loop, lambda: self._wrap_cleaner_files(self._open_files("cleaner")), Random(world.random.getrandbits(64))
        )
        store = MemoryStore(self._tree)
        ensemble = self._ensemble
        environment = Environment(
            clock=world,
            files=self._wrap_files(files),
            open_store=lambda _: store,
            open_cluster_store=lambda *_: ensemble.open(loop) if ensemble is not None else store,
            make_executor=VirtualExecutor,
            new_id=lambda: UUID(int=world.random.getrandbits(UUID_BITS)),
            new_session_id=lambda: world.random.randint(1, 2**31 - 1),
            boot_id=lambda: f"boot-{self._boots}",
            make_cleaner=lambda *_: cleaner,
            make_liveness_responder=lambda _: None,
        )
        world.note(f"start {loop.name}")
        self.process = Process(loop, files, store, Broker(self.config, loop, environment), cleaner)
        return loop.create_task(self.process.broker.start(), name="start")

    def stop(self) -> asyncio.Task[None]:
        """Stop the process like SIGTERM. The task is done when the process has ended; then call `gone`."""
        assert self.process is not None, "there is a process"
        self.world.note(f"stop {self.process.loop.name}")
        return self.process.loop.create_task(self.process.broker.stop(), name="stop")

    def gone(self) -> int:
        """The process ended by itself; returns the number of descriptors that it left open."""
        process, self.process = self.process, None
        assert process is not None, "there was a process"
        left = process.files.open_count
        self._bury(process, silently=False)
        return left

    def kill(self, *, power: bool = False) -> None:
        """Kill the process now; with `power`, the machine loses its power too."""
        process, self.process = self.process, None
        if process is not None:
            self.world.note(f"{'power cut' if power else 'kill'} {process.loop.name}")
            self._bury(process, silently=power)
        if power:
            self.disk.lose_power()
            self._tear_small_files()
            self._boots += 1

    def _tear_small_files(self) -> None:
        """Damage some of the files that a broker can create again, although they were synced, as a loss of power may do.

        The file of log start offsets is not damaged: without it deleted records return, as the documentation says. The recovery
        points are not damaged if the disk has flipped bits. With both faults, a broker cannot distinguish a damaged end from an
        end that was never written.
        """
        for path, file in self.disk.files():
            is_point = path.name == checkpoints.RECOVERY_POINTS
            may_be_torn = path.name.endswith(MADE_AGAIN) and not (is_point and self.disk.has_rotten_bits)
            if may_be_torn and self.disk.random.random() < TORN_OF_ALL:
                self.world.note(f"{path} is torn")
                self.disk.tear(file)

    def replace_disk(self) -> None:
        """Give the machine an empty disk while it is off."""
        assert self.process is None, "no process has files open"
        self.world.note(f"{self.host} gets an empty disk")
        self.disk = self._new_disk()

    @property
    def has_died(self) -> bool:
        """Whether the process died in the middle of an operation, so that the caller must call `kill`."""
        return self.process is not None and self.process.files.dead

    def kill_in(self, changes: int) -> None:
        """Let the broker and its cleaner die in the middle of one of the next changes that either makes to the disk."""
        assert self.process is not None, "there is a process"
        self.process.files.kill_in = self.process.cleaner.files.kill_in = changes

    @property
    def needs_operator(self) -> bool:
        """Whether the broker cannot continue, or continues without a log directory."""
        process = self.process
        if process is None or not process.broker.ready:
            return False
        return process.broker.failure.done() or bool(process.broker.logs.failed_directories)

    def _new_disk(self) -> Disk:
        disk = Disk(Random(self.world.random.getrandbits(64)), now_ms=self.world.now_ms)
        for directory in self.directories:
            disk.make_durable(directory)
        return disk

    def _open_files(self, name: str) -> FaultyFiles:
        return FaultyFiles(self.disk, self.faults, lambda event: self.world.note(f"{name} {event}"))

    def _bury(self, process: Process, *, silently: bool) -> None:
        self.world.epoch += 1
        process.files.die()
        process.cleaner.files.die()
        process.loop.die()
        process.store.expire()
        if self._ensemble is not None:
            self._ensemble.died(self.host)
        self.world.network.process_died(process.loop, silently=silently)
