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
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from barnabas.client.sasl import password_mechanism
from barnabas.digits import is_number
from barnabas.errors import ConfigError
from barnabas.sql.http.surface import Surface
from barnabas.sql.lazy import LazyEngine
from barnabas.sql.listening import POSTGRES, listening_for_postgres, postgres_address
from barnabas.sql.without_pandas import keep_pandas_out
from barnabas.web.routing import HttpError, Response, Router
from barnabas.web.service import ServiceContext

if TYPE_CHECKING:
    from barnabas.sql.interface import Engine
    from barnabas.sql.postgres.authentication import Authenticator
    from barnabas.sql.postgres.server import Server

logger = logging.getLogger(__name__)
METHOD, METHODS = "postgres.authentication.method", ("TRUST", "PASSWORD", "SCRAM")
PRELOAD = "sql.preload"
REGISTRY = "schema.registry.url"
CONNECTING = ("ssl.", "security.protocol")  # settings of connections to the cluster, besides the log-in
DATA_DIR = "sql.data.dir"
FUNCTIONS = "sql.python.functions"
NUMBERS = {  # settings: fields of QueryLimits, the unit of the setting, and its smallest value
    "sql.query.memory.bytes": ("memory_bytes", 1, 1 << 20),
    "sql.query.spill.bytes": ("spill_bytes", 1, 0),
    "sql.queries": ("queries", 1, 1),
    "sql.query.timeout.ms": ("seconds", 1000, 0),
    "sql.query.rows": ("rows", 1, 0),
}


class SqlService:
    """See `web/service.py: Service`.

    Args:
        context: of the host. Settings: `postgres.listener` (HOST:PORT; without it there is no Postgres port),
            `postgres.authentication.method` (`TRUST`, `PASSWORD` or `SCRAM`), `sql.data.dir` (for queries that need more than their
            memory), `sql.preload`, `sql.python.functions`, and the limits of queries in `NUMBERS`.

    Raises:
        ConfigError: a setting that cannot hold.
    """

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._limits = _limits(context.settings)
        self._registry = context.settings.get(REGISTRY)
        self._runs_python = _runs_python(context)
        self._spill_folder = _folder(context.settings.get(DATA_DIR))
        address = context.settings.get(POSTGRES)
        self._postgres_at = postgres_address(address) if address else None
        self._method = _method(context)
        self._preloads = context.settings.get(PRELOAD) == "true"
        self._engine = LazyEngine(self._load)
        self._surface = Surface(
            secured=context.secured,
            mechanism=password_mechanism(context.settings, context.client.credentials),
            settings={key: context.settings[key] for key in context.settings if key.startswith(CONNECTING)},
        )
        self._postgres: Server | None = None
        self._listening: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.router: Router = self._surface.router
        self.ready_lines: list[str] = []

    def _load(self) -> Engine:
        keep_pandas_out()
        from barnabas.sql.duck.pool import QueryLimits
        from barnabas.sql.engine import SqlEngine

        limits = QueryLimits(spill_folder=self._spill_folder, **self._limits)  # type: ignore[arg-type]  # whole numbers where the fields are
        key_index = None if self._spill_folder is None else Path(self._spill_folder) / "keys"
        return SqlEngine(
            self._context.client, limits=limits, registry=self._registry, key_index=key_index, runs_python=self._runs_python
        )

    async def start(self) -> None:
        """Open the Postgres port. Raises CannotListen."""
        if self._postgres_at is not None:
            self._listening, address = listening_for_postgres(*self._postgres_at)
            asyncio.get_running_loop().add_reader(self._listening, self._first_connection)
            self.ready_lines.append(f"barnabas Postgres port accepts connections on {address}")
        self._surface.engine = self._engine
        if self._preloads:
            self._run(self._preload())

    def _first_connection(self) -> None:
        self._stop_waiting()
        self._run(self._serve_postgres())

    def _stop_waiting(self) -> None:
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)

    async def _serve_postgres(self) -> None:
        listening = self._listening
        assert listening is not None
        try:
            protocol = await asyncio.to_thread(import_module, "barnabas.sql.postgres.server")
            self._postgres = await protocol.serve(
                self._engine,
                tls=self._context.tls,
                authenticator=_authenticator(self._method, self._context),
                listening=listening,
                requires_tls=self._context.tls is not None and self._method != "TRUST",
            )
        except BaseException:
            self._listening = None
            listening.close()  # clients are refused, and do not wait for an answer
            raise

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

    async def metrics(self) -> bytes:
        return b""


def _limits(settings: Mapping[str, str]) -> dict[str, float]:
    """The limits of queries that are set. Raises ConfigError."""
    found: dict[str, float] = {}
    for key, (field, unit, least) in NUMBERS.items():
        text = settings.get(key)
        if text is None:
            continue
        if not is_number(text, 2**53) or int(text) < least:
            raise ConfigError(key, text, f"a number from {least} on")
        found[field] = int(text) if unit == 1 else int(text) / unit
    return found


def _runs_python(context: ServiceContext) -> bool:
    """Whether functions in Python run: by default if callers log in, or if only this machine reaches the ports. Raises ConfigError."""
    told = context.settings.get(FUNCTIONS, "").strip().lower()
    if told not in ("", "true", "false"):
        raise ConfigError(FUNCTIONS, told, "true or false")
    if told:
        return told == "true"
    hosts = [urlsplit(context.listener).hostname or ""]
    address = context.settings.get(POSTGRES)
    if address:
        hosts.append(postgres_address(address)[0])
    return context.secured or all(map(_is_own, hosts))


def _is_own(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _folder(path: str | None) -> str | None:
    """A folder, which is made if it is missing. Raises ConfigError."""
    if path is None:
        return None
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise ConfigError(DATA_DIR, path, f"a folder ({getattr(error, 'strerror', None) or error})") from None
    return path


def _method(context: ServiceContext) -> str:
    """How Postgres clients log in. Raises ConfigError."""
    method = context.settings.get(METHOD, "PASSWORD" if context.secured else "TRUST").strip().upper()
    if method not in METHODS:
        raise ConfigError(METHOD, method, f"one of {', '.join(METHODS)}")
    if method != "TRUST" and context.client.credentials is None and context.settings.get(POSTGRES):
        raise ConfigError(METHOD, method, "TRUST unless security.protocol has SASL, by which the cluster checks callers")
    return method


def _authenticator(method: str, context: ServiceContext) -> Authenticator:
    from barnabas.sql.postgres.authentication import Trust

    if method == "TRUST":
        return Trust()
    from barnabas.sql.postgres.logins import Passwords
    from barnabas.sql.postgres.relayed_scram import RelayedScram

    settings = dict(context.settings)
    return RelayedScram(settings) if method == "SCRAM" else Passwords(settings)
