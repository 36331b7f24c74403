"""SQL as a service: the engine, its HTTP surface, and the Postgres port, put together over a cluster.

The ports accept connections at once. The engine and the Postgres protocol are loaded with the first of them, or before in the background
if the service runs alone. Importing this module imports neither.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.digits import is_number
from barnabas.errors import ConfigError
from barnabas.sql.http.surface import Surface
from barnabas.sql.lazy import LazyEngine
from barnabas.web.routing import HttpError, Response, Router
from barnabas.web.service import ServiceContext, ServiceError

if TYPE_CHECKING:
    from barnabas.sql.interface import Engine
    from barnabas.sql.postgres.authentication import Authenticator
    from barnabas.sql.postgres.server import Server

logger = logging.getLogger(__name__)
POSTGRES = "postgres.listener"
MECHANISM = "authentication.sasl.mechanism"
METHOD, METHODS = "postgres.authentication.method", ("TRUST", "PASSWORD", "SCRAM")
PRELOAD = "sql.preload"
REGISTRY = "schema.registry.url"
CONNECTING = ("ssl.", "security.protocol")  # settings of connections to the cluster, besides the log-in
NUMBERS = {  # settings: fields of QueryLimits, and the unit of the setting
    "sql.query.memory.bytes": ("memory_bytes", 1),
    "sql.query.spill.bytes": ("spill_bytes", 1),
    "sql.queries": ("queries", 1),
    "sql.query.timeout.ms": ("seconds", 1000),
    "sql.query.rows": ("rows", 1),
}
BACKLOG = 1_024  # connections that wait while the Postgres protocol is loaded


class SqlService:
    """See `web/service.py: Service`.

    Args:
        context: of the host. Settings: `postgres.listener` (HOST:PORT; without it there is no Postgres port),
            `postgres.authentication.method` (`TRUST`, `PASSWORD` or `SCRAM`), `sql.data.dir` (for queries that need more than their
            memory), `sql.preload`, and the limits of queries in `NUMBERS`.
    """

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._limits = _limits(context.settings)
        self._spill_folder = context.settings.get("sql.data.dir")
        self._postgres_at = postgres_address(context.settings.get(POSTGRES))
        self._method = _method(context)
        self._preloads = context.settings.get(PRELOAD) == "true"
        self._engine = LazyEngine(self._load)
        self._surface = Surface(
            secured=context.secured,
            mechanism=_mechanism(context),
            settings={key: context.settings[key] for key in context.settings if key.startswith(CONNECTING)},
        )
        self._postgres: Server | None = None
        self._listening: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.router: Router = self._surface.router
        self.ready_lines: list[str] = []

    def _load(self) -> Engine:
        from barnabas.sql.duck.pool import QueryLimits
        from barnabas.sql.engine import SqlEngine

        limits = QueryLimits(spill_folder=self._spill_folder, **self._limits)  # type: ignore[arg-type]  # whole numbers where the fields are
        key_index = None if self._spill_folder is None else Path(self._spill_folder) / "keys"
        return SqlEngine(self._context.client, limits=limits, registry=self._context.settings.get(REGISTRY), key_index=key_index)

    async def start(self) -> None:
        """Open the ports. Raises ServiceError if the Postgres port cannot be had."""
        if self._postgres_at is not None:
            self._listen(*self._postgres_at)
        self._surface.engine = self._engine
        if self._preloads:
            self._run(self._preload())

    def _listen(self, host: str, port: int) -> None:
        try:
            self._listening = socket.create_server((host, port), backlog=BACKLOG)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ServiceError(
                f"the Postgres port cannot listen on {host}:{port}: {reason}; --postgres-listener takes another"
            ) from None
        asyncio.get_running_loop().add_reader(self._listening, self._first_connection)
        self.ready_lines.append(f"barnabas Postgres port accepts connections on {host}:{self._listening.getsockname()[1]}")

    def _first_connection(self) -> None:
        self._stop_waiting()
        self._run(self._serve_postgres())

    def _stop_waiting(self) -> None:
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)

    async def _serve_postgres(self) -> None:
        from barnabas.sql.postgres.server import serve

        assert self._listening is not None
        self._postgres = await serve(
            self._engine,
            tls=self._context.tls,
            authenticator=_authenticator(self._method, self._context),
            listening=self._listening,
            requires_tls=self._context.tls is not None and self._method != "TRUST",
        )

    async def _preload(self) -> None:
        await asyncio.to_thread(self._engine.loaded)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("event=sql-not-loaded error=%r", str(task.exception()))

    async def close(self) -> None:
        """Close the ports, and end all sessions."""
        self._surface.engine = None
        if self._postgres is None:
            self._stop_waiting()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._postgres is not None:
            await self._postgres.close()
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        await self._surface.close()
        with contextlib.suppress(RuntimeError):  # the loop's threads are gone
            await asyncio.to_thread(self._engine.close)

    def is_ready(self) -> bool:
        return self._surface.engine is not None

    def error(self, error: HttpError) -> Response:
        return self._surface.error(error)


def _limits(settings: Mapping[str, str]) -> dict[str, float]:
    """The limits of queries that are set. Raises ConfigError."""
    found: dict[str, float] = {}
    for key, (field, unit) in NUMBERS.items():
        text = settings.get(key)
        if text is None:
            continue
        if not is_number(text, 2**53):
            raise ConfigError(key, text, "a number that is not negative")
        found[field] = int(text) if unit == 1 else int(text) / unit
    return found


def _mechanism(context: ServiceContext) -> str:
    """The mechanism of SASL for callers with passwords: that of the host's own check of them."""
    own = context.client.credentials.mechanism if context.client.credentials else "PLAIN"
    return context.settings.get(MECHANISM, own)


def _method(context: ServiceContext) -> str:
    """How Postgres clients log in. Raises ConfigError."""
    method = context.settings.get(METHOD, "PASSWORD" if context.secured else "TRUST").strip().upper()
    if method not in METHODS:
        raise ConfigError(METHOD, method, f"one of {', '.join(METHODS)}")
    return method


def _authenticator(method: str, context: ServiceContext) -> Authenticator:
    from barnabas.sql.postgres.authentication import Trust

    if method == "TRUST":
        return Trust()
    from barnabas.sql.postgres.logins import Passwords
    from barnabas.sql.postgres.relayed_scram import RelayedScram

    settings = dict(context.settings)
    return RelayedScram(settings) if method == "SCRAM" else Passwords(settings, context.settings.get(MECHANISM))


def postgres_address(text: str | None) -> tuple[str, int] | None:
    """HOST:PORT; None for no text. Raises ConfigError."""
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not (colon and host and is_number(port, 65_535)):
        raise ConfigError(POSTGRES, text, "HOST:PORT")
    return host.strip("[]"), int(port)
