"""The SQL engine: makes sessions, and owns what they share.

Each server of SQL over a cluster has an engine. Engines share nothing but topics.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace

from barnabas import limits as bounds
from barnabas.client.config import ClientConfig
from barnabas.errors import ConfigError
from barnabas.sql.catalog.access import Samples
from barnabas.sql.catalog.postgres.functions import type_cases
from barnabas.sql.catalog.store import DefinitionStore
from barnabas.sql.duck.pool import Instances, QueryLimits
from barnabas.sql.interface import Caller, SqlError
from barnabas.sql.live.tables import LiveTables
from barnabas.sql.running import Deadlines
from barnabas.sql.session import SqlSession
from barnabas.sql.settings import DIALECTS
from barnabas.sql.states import ADMIN_SHUTDOWN, TOO_MANY, of_failure
from barnabas.sql.writing.keys import LiveKeys


class SqlEngine:
    """Makes sessions over one cluster. It keeps the seam `Engine`.

    Args:
        config: of the clients; a caller's own settings replace its log-in.
        limits: of queries.
        sessions: most sessions at once.
        dialect: `spark` or `postgres`, for sessions that do not choose: what `7 / 2` is, and where nulls are in an order.

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
    ) -> None:
        if dialect not in DIALECTS:
            raise ConfigError("sql_dialect", dialect, " or ".join(DIALECTS))
        self.config = replace(config, read_committed=True)
        self.limits = limits or QueryLimits()
        self.dialect = dialect
        self.instances = Instances(self.limits, f"CREATE MACRO format_type(kind, modifier) AS {type_cases()};")
        self.deadlines = Deadlines()
        self.samples = Samples()
        self.live = LiveTables()
        self.definitions = DefinitionStore(self.config)
        self.live_keys = LiveKeys()
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
        made = SqlSession(self, caller, next(self._numbers))
        with self._lock:
            self._sessions.add(made)
        return made

    def left(self, session: SqlSession) -> None:
        """A session was closed."""
        with self._lock:
            self._sessions.discard(session)

    def config_of(self, caller: Caller) -> ClientConfig:
        """The settings of a caller's clients. Raises SqlError for a bad one."""
        if not caller.settings:
            return self.config
        servers = ",".join(f"{host}:{port}" for host, port in self.config.bootstrap_servers)
        try:
            own = ClientConfig.from_options({"bootstrap.servers": servers, **caller.settings})
        except ConfigError as error:
            raise of_failure(error) from error
        return replace(
            self.config,
            tls=own.tls or self.config.tls,
            credentials=own.credentials or self.config.credentials,
            client_id=own.client_id,
        )

    def close(self) -> None:
        """End all sessions."""
        with self._lock:
            self._closed = True
            sessions = list(self._sessions)
        for each in sessions:
            each.close()
        self.deadlines.close()
        self.definitions.close()
        self.instances.close()
