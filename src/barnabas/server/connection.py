"""One client connection: it receives bytes, passes frames to the dispatcher, and sends the answers in the order of the requests.

Rules
  1. Requests take effect in their order, and answers leave in the same order, because clients match them by order. A request begins when
     all earlier requests have ended. `request_order.py` has the exceptions: produce requests after produce requests that wait for
     replicas, and fetches after fetches. A request that may not begin yet waits, and all later requests wait too.
  2. The broker does not read from a connection that does not take its answers (`limits.MAX_UNSENT_BYTES`,
     `limits.MAX_REQUESTS_IN_FLIGHT`). While the frames in memory exceed `queued.max.request.bytes`, it reads from no connection.
  3. A turn of the loop handles at most `limits.MAX_REQUESTS_PER_TURN` requests of a connection. Runs of produce requests cost little and
     do not count. So other connections get a turn while one client sends many requests.
  4. A broken frame closes the connection with one log line. No input of a peer may make `buffer_updated` raise an exception.

`FrameReader` keeps unfinished frames. Whole frames are handled in the buffer that all connections of the loop share (`Receiver`). A
handler must not keep a view of a frame after it returns.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from barnabas import limits
from barnabas.errors import ProtocolError
from barnabas.server.answer_order import ORDER, Answer, AnswerOrder
from barnabas.server.connection_interfaces import Dispatcher, LogIn, Mute
from barnabas.server.fastpath.recogniser import Recogniser
from barnabas.server.frame_reader import FrameReader, GetBuffer
from barnabas.server.outbox import Outbox, Part
from barnabas.server.receiver import Receiver
from barnabas.server.request_order import Effect
from barnabas.storage.os_errors import EXHAUSTED

if TYPE_CHECKING:
    from barnabas.quota.budget import Budget, Paid
    from barnabas.security.access import Access

logger = logging.getLogger(__name__)


class Connection(asyncio.BufferedProtocol):
    """The asyncio protocol of one client. A listener's factory makes it."""

    get_buffer: GetBuffer  # an attribute, so that the loop calls `FrameReader` directly

    def __init__(
        self, dispatcher: Dispatcher[Connection], receiver: Receiver, listener: str, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.listener = listener
        self.peer_host = "unknown"
        self.peer_port = 0
        self.local_port = 0
        self.principal = "User:ANONYMOUS"
        self.groups: tuple[str, ...] = ()  # of the principal, for example "Group:finance"
        self.access: Access | None = None  # the principal's rights, from the authorizer's last answer
        self.by_token = False  # the client logged in with a delegation token
        self.authentication: LogIn | None = None  # gets each frame until the client is logged in
        self.login: LogIn | None = None  # set if the listener requires a log-in
        self.max_frame_bytes = receiver.max_frame_bytes
        self.client_software = ("unknown", "unknown")
        self.last_active = loop.time()
        self.on_close: list[Callable[[], None]] = []
        self._dispatcher = dispatcher
        self._receiver = receiver
        self.frames = FrameReader[Connection](receiver, dispatcher)
        self.get_buffer = self.frames.get_buffer
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._outbox: Outbox | None = None
        self.order = AnswerOrder()
        self._answers = self.order.waiting  # the places of unsent answers; the first request is unfinished
        self.paused_for: set[str] = set()
        self.is_working = False
        self.is_put_off = False  # the current request
        self._flushing = False
        self._when_sent: Callable[[], None] | None = None
        self.recognisers: list[Recogniser[Connection]] = []  # the fast paths, at most one for each API
        self.budget: Budget | None = None  # of the client of the current request, if there are quotas
        self.started_ns = 0  # when the current request began, if it has a budget
        self.paid: Paid | None = None
        self.mute: Mute | None = None  # set once the client was over a quota
        # kinds of requests for which the debt of the client was already checked on this connection
        self.is_asked: set[str] = set()
        self.closed = False

    @property
    def peer(self) -> str:
        return f"{self.peer_host}:{self.peer_port}"

    def forget_learnt(self) -> None:
        """Make every fast path forget what it learnt. The general way handles the next requests."""
        for recogniser in self.recognisers:
            recogniser.forget()

    # --- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports do not inherit from it
        peer = transport.get_extra_info("peername")
        if peer:
            self.peer_host, self.peer_port = peer[0], peer[1]
        self.local_port = (transport.get_extra_info("sockname") or ("", 0))[1]
        descriptor = transport.get_extra_info("socket").fileno()
        make_outbox = transport.get_extra_info("outbox", Outbox)  # TLS and simulated transports make their own
        pinned_files, write_waiters = self._dispatcher.pinned_files, self._dispatcher.write_waiters
        self._outbox = make_outbox(self._loop, descriptor, pinned_files, write_waiters, self._on_room, self._on_send_error)
        refused = self._dispatcher.connection_opened(self)
        if refused is not None:
            logger.warning("event=connection-refused peer=%s reason=%r", self.peer, refused)
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._release()
        # a TLS transport refers back to this connection; without the cycle, both are freed without the garbage collector
        self._transport = None

    def eof_received(self) -> bool:
        return False

    def buffer_updated(self, nbytes: int) -> None:
        if self.closed:
            return
        frames = self.frames
        if frames.partial is None:
            # not for every piece of a frame: a request that never ends must not keep its connection open
            self.last_active = self._loop.time()
            if frames.start:
                frames.handle(self, frames.take_start(self, nbytes))
            elif frames.expected:
                frames.handle(self, self._receiver.large[:nbytes], in_large=True)
            else:
                frames.handle(self, self._receiver.buffer[:nbytes])
        elif frames.fill(self, nbytes):
            self.last_active = self._loop.time()
        self.flush()

    # --- answers

    def expect_answer(self, effect: Effect = Effect.CHANGES) -> Answer:
        """Reserve the next place in the order of answers, for a request that has not ended.

        Args:
            effect: the effect of the request. It decides whether later requests must wait.
        """
        answer = Answer()
        if not self._answers:
            self.order.effect = effect
        self._answers.append(answer)
        if len(self._answers) >= limits.MAX_REQUESTS_IN_FLIGHT:
            self.pause("in-flight")
        return answer

    def send(self, parts: list[Part]) -> None:
        """Answer the current request, no part of which waits."""
        outbox = self._outbox
        if outbox is None:
            return
        if self._answers:
            self.order.hold(self, outbox, self.expect_answer(), parts)
            return
        for part in parts:
            outbox.push(part)
        if outbox.waiting_bytes > limits.MAX_UNSENT_BYTES:
            self._check_unsent(outbox)

    def flush(self) -> None:
        """Send the answers now, and not together with the answers to the other requests that arrived at the same time."""
        if self._outbox is not None:
            self._outbox.flush()
            if self._when_sent is not None:
                self._tell_sent()

    def when_sent(self, call: Callable[[], None] | None) -> None:
        """Call `call` in a turn of the loop after all answers so far have left. It replaces an earlier `call`."""
        self._when_sent = call

    def _tell_sent(self) -> None:
        if self._outbox is not None and not self._outbox.waiting_bytes:
            self._loop.call_soon(self._call_when_sent)

    def _call_when_sent(self) -> None:
        if self._when_sent is None or self._outbox is None or self._outbox.waiting_bytes:
            return  # another answer is being sent
        call, self._when_sent = self._when_sent, None
        call()

    def complete(self, answer: Answer, parts: list[Part], *, among_many: bool = False) -> None:
        """Answer a request that had to wait.

        Args:
            among_many: this turn of the loop completes other answers too, and sends all of them at its end. Not for file regions.
        """
        outbox = self._outbox
        if outbox is None:
            return
        if self._answers and self._answers[0] is answer:
            answer.parts = parts
        else:
            self.order.hold(self, outbox, answer, parts)
        while self._answers and self._answers[0].parts is not None:
            first = self._answers.popleft()
            if first.size:
                self.order.held_bytes -= first.size
            for part in first.parts or ():
                outbox.push(part)
        if among_many and not self.paused_for:
            if not self._flushing:
                self._flushing = True
                self._loop.call_soon(self._flush_all)
        elif not self.is_working:
            outbox.flush()
        self._check_unsent(outbox)
        if not self._answers and ORDER in self.paused_for:
            # Not from here: the caller may be in the middle of work on state that the next request changes
            self._loop.call_soon(self.resume, ORDER)
        if "in-flight" in self.paused_for and len(self._answers) < limits.MAX_REQUESTS_IN_FLIGHT // 2:
            self.resume("in-flight")
        if "held" in self.paused_for and self.order.held_bytes < limits.MAX_UNSENT_BYTES // 2:
            self.resume("held")

    def _flush_all(self) -> None:
        self._flushing = False
        self.flush()

    def close(self) -> None:
        """Close the connection and drop its unsent answers."""
        if self._transport is not None:
            self._transport.abort()
        self._release()

    def close_after_answers(self) -> None:
        """Stop reading, and close when all answers so far are sent."""
        self.pause("closing")
        self.flush()
        if self._outbox is None or not self._outbox.waiting_bytes:
            self.close()

    def hand_over(self) -> int | None:
        """Stop reading until `take_back` or the end, and return a duplicate descriptor, from which another thread reads. None if this
        connection cannot be handed over (TLS, or work is under way).
        """
        outbox = self._outbox
        if type(outbox) is not Outbox or outbox.waiting_bytes or self._answers or self.paused_for:
            return None
        if self.frames.partial is not None or self.frames.start:
            return None
        if self.authentication is not None:
            return None
        self.pause("handed over")
        return os.dup(outbox.descriptor)

    def take_back(self, received: bytes) -> None:
        """Continue to read. Another thread has read `received`, and has not handled it."""
        self.frames.keep_back(memoryview(bytearray(received + self.frames.take_backlog())))
        self.resume("handed over")

    # --- pausing

    def put_off(self, reason: str) -> None:
        """Stop the current request before it has changed anything. The request comes again after `resume`."""
        self.is_put_off = True
        self.pause(reason)

    def pause(self, reason: str) -> None:
        if not self.paused_for and self._transport is not None and not self.closed:
            self._transport.pause_reading()
        self.paused_for.add(reason)

    def pause_again(self) -> None:
        """Stop reading again: uvloop begins to read after `connection_made`, even if that has paused the transport."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self, reason: str) -> None:
        self.paused_for.discard(reason)
        if self.closed or self._transport is None:
            return
        if self.paused_for:
            if self._outbox is not None and not self.is_working:
                self._outbox.flush()  # an answer that was held: a muted client gets it too
            return
        if self.frames.backlog:
            self.frames.handle(self, self.frames.take_backlog(), is_own=True)
        if self._outbox is not None:
            self._outbox.flush()
        if not self.paused_for and not self.closed:
            self._transport.resume_reading()

    def wait_for_turn(self) -> None:
        """Let the loop serve other connections before the next request."""
        self.pause("turn")
        self._loop.call_soon(self.resume, "turn")

    def _check_unsent(self, outbox: Outbox) -> None:
        if outbox.waiting_bytes > limits.MAX_UNSENT_BYTES:
            outbox.flush()
            if outbox.waiting_bytes > limits.MAX_UNSENT_BYTES:
                self.pause("unsent")

    def _on_room(self) -> None:
        if "closing" in self.paused_for:
            self.close()
            return
        if self._when_sent is not None:
            self._tell_sent()
        self.resume("unsent")

    def _on_send_error(self, error: OSError) -> None:
        if error.errno in EXHAUSTED:
            logger.warning("event=slow-reader-given-up peer=%s error=%r", self.peer, str(error))
        else:
            logger.debug("event=connection-lost peer=%s error=%r", self.peer, str(error))
        self.close()

    def fail(self, error: ProtocolError) -> None:
        logger.warning(
            "event=connection-closed peer=%s client=%r reason=%r", self.peer, "/".join(self.client_software), str(error)
        )
        self.close()

    def _release(self) -> None:
        if self.closed:
            return
        self.closed = True
        self.frames.close(self)
        if self._outbox is not None:
            self._outbox.close()
            self._outbox = None
        self._answers.clear()
        self._when_sent = None
        self.forget_learnt()
        callbacks, self.on_close = self.on_close, []
        for callback in callbacks:
            callback()
        self._dispatcher.connection_closed(self)
