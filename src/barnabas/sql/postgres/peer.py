"""One client's socket: its startup, TLS, its log-in, and then its messages, which a thread of the session answers."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from ssl import SSLContext
from typing import Any, Protocol, cast

from barnabas import limits
from barnabas.sql.interface import Engine, Looks, Notice, ReadsOneRow, SqlError
from barnabas.sql.postgres import answers
from barnabas.sql.postgres.authentication import Authenticator, Login
from barnabas.sql.postgres.channel import Gone
from barnabas.sql.postgres.connection import Connection, told
from barnabas.sql.postgres.mailbox import Budget, Mailbox
from barnabas.sql.postgres.messages import QUERY, SYNC, Fatal, Frames, Message
from barnabas.sql.postgres.quick import Quick
from barnabas.sql.postgres.startup import NEWEST, CancelRequest, EncryptionRequest, Packet, Startup, StartupReader
from barnabas.tls.failures import reason_of

logger = logging.getLogger(__name__)
SHORT_SECRET, LONG_SECRET = 4, 32  # bytes of a key to cancel with: of version 3.0, and of 3.2
LOADING = Notice(
    "SQL is loading its libraries", hint="The first time after an installation it also compiles code, which takes up to a minute."
)


class Host(Protocol):
    """The parts of the server that a connection uses."""

    engine: Engine
    tls: SSLContext | None
    authenticator: Authenticator
    requires_tls: bool
    budget: Budget

    def looks_of(self, session: ReadsOneRow) -> Looks: ...

    def new_process(self) -> int: ...

    def admit(self, peer: Peer) -> bool: ...

    def check_room(self) -> None: ...

    def dismiss(self, peer: Peer) -> None: ...

    def cancel(self, request: CancelRequest) -> None: ...

    def submit(self, action: Callable[[], Any]) -> None: ...

    def keep(self, task: asyncio.Task[None]) -> None: ...


class Phase(Enum):
    """The kind of the next bytes."""

    STARTUP = "a startup packet"
    TLS = "a handshake"
    MESSAGES = "messages"
    OVER = "nothing"


class Peer(asyncio.Protocol):
    """The event loop's side of a connection."""

    def __init__(self, server: Host) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._phase = Phase.STARTUP
        self._reader, self._frames = StartupReader(), Frames(limits.MAX_BEARER_BYTES)
        self.mailbox = Mailbox(self._loop, server.budget, self._write, self._read_on)
        self._startup: Startup | None = None
        self._connection: Connection | None = None
        self._quick: Quick | None = None
        self._log_in_ends = math.inf  # by the clock of the loop
        self._last_words: SqlError | None = None
        self._is_encrypted = False
        self._partial = 0
        self._active_at = self._begun_at = self._loop.time()
        self._loading_since: float | None = None  # between the log-in and the session
        self.process, self.secret = server.new_process(), b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=limits.MAX_POSTGRES_UNSENT_BYTES // 2)
        if not self._server.admit(self):
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._active_at = self._loop.time()
        try:
            if self._phase is Phase.STARTUP:
                self._receive_startup(data)
            elif self._phase is Phase.MESSAGES:
                self._receive_messages(data)
        except SqlError as failure:
            self.end(_fatal(failure))

    def _receive_startup(self, data: bytes) -> None:
        packet = self._reader.receive(data)
        while packet is not None:
            rest = self._reader.rest
            self._receive_packet(packet, rest)
            packet = self._reader.receive(rest) if self._phase is Phase.STARTUP and rest else None

    def _receive_packet(self, packet: Packet, rest: bytes) -> None:
        if isinstance(packet, CancelRequest):
            self._server.cancel(packet)
            self._close()
        elif isinstance(packet, EncryptionRequest):
            self._encrypt(packet, rest)
        else:
            self._start(packet)
            if rest:
                self._receive_messages(rest)

    def _encrypt(self, asked: EncryptionRequest, rest: bytes) -> None:
        if not asked.tls or self._server.tls is None or self._is_encrypted:
            self._write(answers.ENCRYPTION_REFUSED)
            return
        if rest:
            raise Fatal("08P01", "received unencrypted data after SSL request")
        assert self._transport is not None
        self._transport.pause_reading()
        self._write(answers.TLS_ACCEPTED)
        self._phase = Phase.TLS
        self._server.keep(self._loop.create_task(self._shake_hands()))

    async def _shake_hands(self) -> None:
        assert self._transport is not None
        assert self._server.tls is not None
        try:
            encrypted = await self._loop.start_tls(
                self._transport, self, self._server.tls, server_side=True, ssl_handshake_timeout=limits.TLS_HANDSHAKE_TIMEOUT_S
            )
        except OSError as error:
            logger.info("event=postgres-tls-failed reason=%r", reason_of(error))
            encrypted = None
        if encrypted is None or self._phase is Phase.OVER:
            self._close()
            return
        self._transport, self._is_encrypted, self._phase = encrypted, True, Phase.STARTUP
        self._transport.set_write_buffer_limits(high=limits.MAX_POSTGRES_UNSENT_BYTES // 2)

    def _start(self, startup: Startup) -> None:
        if self._server.requires_tls and not self._is_encrypted:
            raise Fatal("28000", "the server accepts sessions over TLS only", hint="Connect with sslmode=require.")
        self._startup = startup
        self._phase = Phase.MESSAGES
        self.secret = secrets.token_bytes(LONG_SECRET if startup.version == NEWEST else SHORT_SECRET)
        self._server.check_room()
        self.mailbox.begin()
        self._server.submit(self._run)

    def _receive_messages(self, data: bytes) -> None:
        found = self._frames.receive(data)
        fits = self._server.budget.add(self._frames.waiting - self._partial)
        self._partial = self._frames.waiting
        quick = self._quick
        if quick is not None and found:
            if quick.is_waiting:
                found = [*quick.withdraw(), *found]
            elif fits and self.mailbox.at_rest and quick.take(found):
                return
        self._deliver(found)
        if not fits:
            raise Fatal("53200", "the server has no memory for more messages")
        if self.mailbox.stops_reading() and self._transport is not None:
            self._transport.pause_reading()

    def _deliver(self, found: Sequence[Message]) -> None:
        if self.mailbox.deliver(found):
            self._server.submit(self._run)

    def _read_on(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        self.mailbox.pause(True)

    def resume_writing(self) -> None:
        self.mailbox.pause(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self._phase = Phase.OVER
        self._transport = None
        self._server.budget.add(-self._partial)
        self._partial = 0
        self._leave()
        if not self.mailbox.busy:
            self._server.dismiss(self)

    def end(self, reason: SqlError | None = None) -> None:
        """Tell the client why, and end the connection; a statement that runs is cancelled."""
        if self._phase is Phase.OVER:
            return
        has_session = self._phase is Phase.MESSAGES
        self._phase = Phase.OVER
        self._last_words = reason
        if has_session:
            self._leave()
            return
        if reason is not None:
            self._write(answers.error(reason))
        self._close()

    def _leave(self) -> None:
        if self.mailbox.left:
            return
        if self._quick is not None:
            self._quick.withdraw()
        idle = self.mailbox.leave()
        if self._startup is None:
            self.mailbox.end()
        elif idle:
            self._server.submit(self._finish)
        else:
            self.cancel()

    def cancel(self) -> None:
        """End the statement that runs, if one does."""
        if self._quick is not None and self._quick.is_waiting:
            self._deliver(self._quick.withdraw())
        if self._connection is not None:
            self._server.submit(self._connection.cancel)

    def check(self, now: float) -> None:
        """End the connection if it was silent for too long. The time in which the server works for it does not count."""
        silent = now - self._active_at
        if self._phase is Phase.OVER:
            if self.mailbox.busy:
                self.cancel()  # again, since the statement may just have begun the first time
            elif silent > limits.POSTGRES_STOP_TIMEOUT_S:
                self.abort()  # it does not read its last answers
        elif self.mailbox.busy and not self.mailbox.waits:
            self._active_at = self._begun_at = now
            self._tell_loading(now)
        elif self._connection is None:
            if now - self._begun_at > limits.POSTGRES_STARTUP_TIMEOUT_S:
                self.end(Fatal("08P01", "the log-in took too long"))
        elif self._partial and silent > limits.POSTGRES_MESSAGE_TIMEOUT_S:
            self.end(Fatal("08P01", "the rest of a message did not arrive"))
        elif now > self._log_in_ends and self._connection.state == "I" and not self.mailbox.waits:
            self.end(Fatal("28000", "the log-in of this session has ended", hint="Connect again."))
        elif silent > limits.POSTGRES_IDLE_TIMEOUT_S:
            self.end(Fatal("57P05", "terminating connection due to idle-session timeout"))
        elif silent > limits.POSTGRES_IDLE_IN_TRANSACTION_TIMEOUT_S and (self._connection.state != "I" or self.mailbox.waits):
            self.end(Fatal("25P03", "terminating connection due to idle-in-transaction timeout"))

    def _tell_loading(self, now: float) -> None:
        if self._loading_since is not None and now - self._loading_since > limits.SERVICE_SILENT_S:
            self._loading_since = None
            self._write(answers.notice(LOADING))

    def abort(self) -> None:
        """Drop the socket."""
        if self._transport is not None:
            self._transport.abort()

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _close(self) -> None:
        self._phase, self._active_at = Phase.OVER, self._loop.time()
        if self._transport is not None:
            self._transport.close()

    def _ended(self) -> None:
        """The last thread has ended."""
        if self._transport is None:
            self._server.dismiss(self)

    # in the thread of the session

    def _run(self) -> None:
        """Answer the messages that wait."""
        try:
            if self._connection is None:
                self._log_in()
            connection, mailbox = self._connection, self.mailbox
            assert connection is not None
            while (message := mailbox.take()) is not None:
                if not connection.handle(message):
                    break
                if message.kind in (SYNC, QUERY) and mailbox.has_more():
                    mailbox.flush()
            else:
                return
        except Gone:
            pass
        except Exception as failure:  # noqa: BLE001 - whatever it is, the client is told and the session released
            self._last_words = self._last_words or _fatal(failure)
        self._finish()

    def _finish(self) -> None:
        """The last thread of a connection: release the session, say the last words, close the socket."""
        words = b"" if self._last_words is None else answers.error(self._last_words)
        self.mailbox.last_words(words)
        self._call(self._close)
        try:
            if self._connection is not None:
                self._connection.close()
        except Exception:
            logger.exception("event=sql-session-close-failed")
        finally:
            self.mailbox.end()
            self._call(self._ended)

    def _call(self, action: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(action)

    def _log_in(self) -> None:
        startup, mailbox = self._startup, self.mailbox
        assert startup is not None
        if startup.negotiates:
            mailbox.send(answers.negotiate(NEWEST if startup.newer else startup.version, startup.unknown))
        login = Login(startup, mailbox, address=self._address(), is_encrypted=self._is_encrypted)
        caller, lasts_s = self._server.authenticator.log_in(login)
        self._log_in_ends = self._loop.time() + lasts_s
        mailbox.send(answers.AUTHENTICATION_OK)
        mailbox.flush()  # the first session of an engine can take a minute
        self._loading_since = self._loop.time()
        self._connection = Connection(self._server.engine.session(caller), mailbox)
        self._quick = self._connection.quick(self._server.looks_of, self._write, self._deliver)
        self._loading_since = None
        self._frames.most = limits.MAX_POSTGRES_MESSAGE_BYTES
        mailbox.send(answers.backend_key(self.process, self.secret))
        self._connection.begin()

    def _address(self) -> str:
        found: Any = None if self._transport is None else self._transport.get_extra_info("peername")
        return str(found[0]) if found else ""


def _fatal(failure: Exception) -> Fatal:
    known = told(failure)
    return Fatal(known.sqlstate, known.message, detail=known.detail, hint=known.hint)
