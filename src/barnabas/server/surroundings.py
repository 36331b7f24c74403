"""What a broker takes from the machine it runs on, so that a simulation can put something else in each place.

Owns the real ones: the system's clock and files, an SQLite file for the metadata, threads, random ids, a process that compacts. The event
loop, and with it the network, is handed to the broker beside them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid4

from barnabas.clock import Clock, SystemClock
from barnabas.cluster.embedded_store import EmbeddedStore
from barnabas.cluster.store import MetadataStore
from barnabas.server.cleaning.process import Cleaner, CleanerProcess
from barnabas.storage.files import Files, OsFiles

MAX_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The defaults are the real machine.

    Args:
        open_store: the metadata of a single broker, by its first log directory.
        make_executor: `count` threads whose names begin with `name`.
        new_id: an id that nobody else has.
        new_session_id: a fetch session's, positive and hard to guess.
        make_cleaner: where cleanings are carried out; with the broker's loop and its I/O threads.
    """

    clock: Clock = field(default_factory=SystemClock)
    files: Files = field(default_factory=OsFiles)
    open_store: Callable[[Path], MetadataStore] = EmbeddedStore
    make_executor: Callable[[int, str], Executor] = ThreadPoolExecutor
    new_id: Callable[[], UUID] = uuid4
    new_session_id: Callable[[], int] = lambda: random.randint(1, MAX_INT32)
    make_cleaner: Callable[[asyncio.AbstractEventLoop, Executor], Cleaner] = CleanerProcess
