"""The listener: takes connections, and owns what they share: threads, memory, the keys to cancel with."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from socket import socket
from ssl import SSLContext
from typing import Any

from barnabas import limits
from barnabas.sql.interface import Engine, Looks, ReadsOneRow
from barnabas.sql.postgres.authentication import Authenticator, Trust
from barnabas.sql.postgres.mailbox import Budget
from barnabas.sql.postgres.messages import Fatal
from barnabas.sql.postgres.peer import Peer
from barnabas.sql.postgres.startup import CancelRequest

logger = logging.getLogger(__name__)
BACKLOG = 1_024
CHECK_S = 0.5  # between two looks for silent connections
SPARE_CONNECTIONS = 100  # beyond the limit: they may cancel, and the others are told that there are too many
SPARE_THREADS = 16  # for cancellations and ends


class Server:
    """A Postgres listener. `serve` makes it."""

    def __init__(self, engine: Engine, tls: SSLContext | None, authenticator: Authenticator, requires_tls: bool) -> None:
        self.engine, self.tls, self.authenticator, self.requires_tls = engine, tls, authenticator, requires_tls
        self.budget = Budget()
        self._looks: Looks | None = None
        self.port = 0
        self._peers: dict[int, Peer] = {}
        self._threads = ThreadPoolExecutor(limits.MAX_POSTGRES_CONNECTIONS + SPARE_THREADS, "postgres")
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Server | None = None
        self._all_gone = asyncio.Event()
        self._closing = False

    async def start(self, host: str, port: int, listening: socket | None = None) -> None:
        """Listen at an address, where port 0 takes a free one, or on a socket. Raises OSError."""
        loop = asyncio.get_running_loop()
        if listening is None:
            self._listening = await loop.create_server(lambda: Peer(self), host, port, backlog=BACKLOG)
        else:
            self._listening = await loop.create_server(lambda: Peer(self), sock=listening, backlog=BACKLOG)
        self.port = self._listening.sockets[0].getsockname()[1]
        self.keep(loop.create_task(self._watch()))

    async def close(self) -> None:
        """Stop: statements that run are cancelled, and clients are told so (57P01)."""
        self._closing = True
        if self._listening is not None:
            self._listening.close()
        for peer in list(self._peers.values()):
            peer.end(Fatal("57P01", "terminating connection due to administrator command"))
        if self._peers:
            self._all_gone.clear()  # it may be set since an earlier moment without connections
            with suppress(TimeoutError):
                async with asyncio.timeout(limits.POSTGRES_STOP_TIMEOUT_S):
                    await self._all_gone.wait()
        for peer in list(self._peers.values()):
            peer.abort()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._looks is not None:
            await self._looks.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.POSTGRES_STOP_TIMEOUT_S):
                await asyncio.to_thread(self._threads.shutdown)

    @property
    def connections(self) -> int:
        """Open now."""
        return len(self._peers)

    def admit(self, peer: Peer) -> bool:
        """Whether a connection may send its first packet."""
        if self._closing or len(self._peers) >= limits.MAX_POSTGRES_CONNECTIONS + SPARE_CONNECTIONS:
            return False
        self._peers[peer.process] = peer
        return True

    def check_room(self) -> None:
        """Raises Fatal if there are too many connections."""
        if len(self._peers) > limits.MAX_POSTGRES_CONNECTIONS:
            raise Fatal("53300", "sorry, too many clients already")

    def dismiss(self, peer: Peer) -> None:
        """A connection is over."""
        self._peers.pop(peer.process, None)
        if not self._peers:
            self._all_gone.set()

    def looks_of(self, session: ReadsOneRow) -> Looks:
        """The looks of this server's event loop at tables in memory."""
        if self._looks is None:
            self._looks = session.looks()
        return self._looks

    def new_process(self) -> int:
        """A number that names a connection, for cancellations."""
        while (found := secrets.randbits(31)) in self._peers or not found:
            pass
        return found

    def cancel(self, request: CancelRequest) -> None:
        """End the statement of another connection, if the secret is that connection's."""
        peer = self._peers.get(request.process)
        if peer is not None and peer.secret and hmac.compare_digest(peer.secret, request.secret):
            peer.cancel()

    def submit(self, action: Callable[[], Any]) -> None:
        """Run it in a thread."""
        with suppress(RuntimeError):  # the server is closed, and its sessions with it
            self._threads.submit(action)

    def keep(self, task: asyncio.Task[None]) -> None:
        """Hold a task until it ends."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(CHECK_S)
            for peer in list(self._peers.values()):
                try:
                    peer.check(loop.time())
                except Exception:
                    logger.exception("event=postgres-check-failed")


async def serve(
    engine: Engine,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: SSLContext | None = None,
    authenticator: Authenticator | None = None,
    *,
    listening: socket | None = None,
    requires_tls: bool = False,
) -> Server:
    """Serve an engine's sessions to Postgres clients.

    Args:
        port: 0 takes a free one.
        listening: a socket that listens already, in the place of an address; the server closes it.
        tls: the context for clients that ask for TLS; without one they are refused it.
        requires_tls: refuse a session without it.
        authenticator: by default every name is believed.

    Raises:
        OSError: the address cannot be had.
    """
    server = Server(engine, tls, authenticator or Trust(), requires_tls)
    await server.start(host, port, listening)
    return server
