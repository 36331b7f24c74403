"""The SQL engine: makes sessions, and owns what they share.

Each server of SQL over a cluster has an engine. Engines share nothing but topics.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from pathlib import Path

from barnabas import limits as bounds
from barnabas.client.config import ClientConfig
from barnabas.errors import ConfigError
from barnabas.schemas.arrow.columns import RegistryAddress
from barnabas.sql.catalog.function_store import FunctionStore
from barnabas.sql.catalog.postgres.functions import type_cases
from barnabas.sql.catalog.samples import Samples
from barnabas.sql.catalog.sequence_store import SequenceStore
from barnabas.sql.catalog.store import DefinitionStore
from barnabas.sql.duck.pool import Instances, QueryLimits
from barnabas.sql.interface import Caller, SqlError
from barnabas.sql.live.stored import StoredRows
from barnabas.sql.live.tables import LiveTables
from barnabas.sql.session import SqlSession
from barnabas.sql.settings import DIALECTS
from barnabas.sql.shared import Shared
from barnabas.sql.states import ADMIN_SHUTDOWN, TOO_MANY
from barnabas.sql.views.jobs import ViewJobs


class SqlEngine:
    """Makes sessions over one cluster. It keeps the seam `Engine`.

    Args:
        config: of the clients; a caller's own settings replace its log-in.
        limits: of queries.
        sessions: most sessions at once.
        dialect: `spark` or `postgres`, for sessions that do not choose: what `7 / 2` is, and where nulls are in an order.
        registry: of schemas: topics without a definition then have the columns of their newest schema.
        key_index: the folder of the indexes of keys of topics; None: no index.
        live_rows: the folder where tables in memory are kept for the next server; None: it reads their topics.
        runs_python: whether users' functions in Python run here, and may be made here.

    Raises:
        ConfigError: an unknown dialect.
    """

    def __init__(
        self,
        config: ClientConfig,
        *,
        limits: QueryLimits | None = None,
        sessions: int = bounds.MAX_SQL_SESSIONS,
        dialect: str = "spark",
        registry: RegistryAddress | str | None = None,
        key_index: Path | None = None,
        live_rows: Path | None = None,
        runs_python: bool = True,
    ) -> None:
        if dialect not in DIALECTS:
            raise ConfigError("sql_dialect", dialect, " or ".join(DIALECTS))
        own = replace(config, read_committed=True)
        bounds_of_queries = limits or QueryLimits()
        instances = Instances(bounds_of_queries, f"CREATE MACRO format_type(kind, modifier) AS {type_cases()};")
        address = RegistryAddress(registry) if isinstance(registry, str) else registry
        live = LiveTables(None if live_rows is None else StoredRows(live_rows))
        self.shared = Shared(
            own, bounds_of_queries, dialect, instances, DefinitionStore(own), SequenceStore(own), FunctionStore(own),
            Samples(address), ViewJobs(own), live, key_index=key_index, runs_python=runs_python,
        )  # fmt: skip
        self._most = sessions
        self._numbers = itertools.count(1)
        self._sessions: set[SqlSession] = set()
        self._lock = threading.Lock()
        self._closed = False

    def session(self, caller: Caller) -> SqlSession:
        """A session. Raises SqlError 53300 if there are too many."""
        with self._lock:
            if self._closed:
                raise SqlError(ADMIN_SHUTDOWN, "the server is stopping")
            if len(self._sessions) >= self._most:
                raise SqlError(TOO_MANY, f"there are {self._most} sessions already")
        made = SqlSession(self.shared, caller, next(self._numbers), self._left)
        with self._lock:
            self._sessions.add(made)
        return made

    def _left(self, session: SqlSession) -> None:
        with self._lock:
            self._sessions.discard(session)

    def close(self) -> None:
        """End all sessions."""
        with self._lock:
            self._closed = True
            sessions = list(self._sessions)
        for each in sessions:
            each.close()
        self.shared.close()
