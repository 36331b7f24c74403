"""The machine that a broker runs on. A simulation replaces each part.

Owns the real parts: the system's clock and files, an SQLite file for the metadata, threads, random ids, a process that compacts logs. The
broker gets the event loop, and with it the network, separately.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from uuid import UUID, uuid4

from msgspec import Struct, field

from barnabas.clock import Clock, SystemClock
from barnabas.cluster.store.embedded import EmbeddedStore
from barnabas.cluster.store.interface import MetadataStore
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.server.cleaning.process import Cleaner, CleanerProcess
from barnabas.server.cluster.liveness_responder import LivenessResponder
from barnabas.storage.files import Files, OsFiles

MAX_INT32 = 2**31 - 1
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
Run = Callable[[Callable[[], None]], object]
OpenClusterStore = Callable[[BrokerConfig, Run], MetadataStore]


def read_boot_id() -> str:
    """The id of this boot of the machine; "" if the system has none. An empty id never equals another one."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


def open_zookeeper(config: BrokerConfig, run: Run) -> MetadataStore:
    """A session with the store at `zookeeper.connect`. `run` calls its watchers."""
    from barnabas.cluster.zookeeper.access import access_of
    from barnabas.cluster.zookeeper.address import SCHEME, parse_address
    from barnabas.cluster.zookeeper.store import ZooKeeperStore  # imported only in a cluster, so that a single broker starts fast

    text = config.zookeeper_connect or ""
    try:
        address = parse_address(SCHEME + text)
    except ValueError as error:
        raise ConfigError("zookeeper.connect", text, str(error)) from error
    return ZooKeeperStore(
        address,
        run=run,
        session_timeout_ms=config.metadata_session_timeout_ms,
        connection_timeout_ms=config.zookeeper_connection_timeout_ms,
        access=access_of(config),
    )


class Environment(Struct, frozen=True):
    """The parts of the machine; the defaults are the real ones.

    Args:
        open_store: opens the metadata of a single broker, in its first log directory.
        open_cluster_store: opens a session with the metadata of a cluster; blocks.
        make_executor: makes `count` threads whose names begin with `name`.
        new_id: makes a unique id.
        new_session_id: makes the id of a fetch session, from 1 to 2**31 - 1 at random.
        boot_id: the id of this boot of the machine; within one boot, unsynced writes survive.
        make_cleaner: makes the part that executes cleanings; gets the broker's loop and its I/O threads.
        make_liveness_responder: makes the thread that answers probes while the loop is busy; None if the loop answers all.
    """

    clock: Clock = field(default_factory=SystemClock)
    files: Files = field(default_factory=OsFiles)
    open_store: Callable[[Path], MetadataStore] = EmbeddedStore
    open_cluster_store: OpenClusterStore = open_zookeeper
    make_executor: Callable[[int, str], Executor] = ThreadPoolExecutor
    new_id: Callable[[], UUID] = uuid4
    new_session_id: Callable[[], int] = lambda: random.randint(1, MAX_INT32)
    boot_id: Callable[[], str] = read_boot_id
    make_cleaner: Callable[[asyncio.AbstractEventLoop, Executor], Cleaner] = CleanerProcess
    make_liveness_responder: Callable[[asyncio.AbstractEventLoop], LivenessResponder | None] = LivenessResponder
