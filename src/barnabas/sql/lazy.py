"""An engine that is loaded with its first session.

DuckDB, pyarrow, numba and sqlglot take seconds to load and 200 MB of memory. A broker that nobody asks in SQL does not pay for them.
Imports none of them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.sql.interface import Caller, Engine, Session

logger = logging.getLogger(__name__)


class LazyEngine:
    """It keeps the seam `Engine`; its methods may be called from several threads.

    Args:
        load: makes the engine; called once, and again after it has failed.
    """

    def __init__(self, load: Callable[[], Engine]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._closed = False

    def loaded(self) -> Engine:
        """The engine, which is loaded if it was not."""
        with self._lock:
            if self._engine is None:
                began = time.monotonic()
                logger.info("event=sql-loading")
                self._engine = self._load()
                logger.info("event=sql-loaded seconds=%.1f", time.monotonic() - began)
                if self._closed:
                    self._engine.close()
            return self._engine

    def session(self, caller: Caller) -> Session:
        """A session. Raises SqlError."""
        return self.loaded().session(caller)

    def close(self) -> None:
        """End all sessions; an engine that is being loaded is closed after that."""
        self._closed = True
        engine = self._engine
        if engine is not None:
            engine.close()
