"""One client connection: bytes in, frames to the dispatcher, answers out in the order of the requests.

Rules
  1. Requests take effect in their order, and answers leave in it (the protocol has no other way to tell them apart). A request is worked
     on when those before it have ended; `request_order.py` says which may be worked on beside them: produce requests behind produce
     requests that wait for replicas, fetches behind fetches. One that may not stays where it is, with all behind it, until it is its turn.
  2. A connection that does not take its answers is not read (`limits.MAX_UNSENT_BYTES`, `limits.MAX_REQUESTS_IN_FLIGHT`), nor is any
     while frames in memory exceed `queued.max.request.bytes`.
  3. A turn of the loop works on so many requests of a connection and no more (`limits.MAX_REQUESTS_PER_TURN`; runs of produce requests,
     which cost little, are not counted): who sends many at once has others served in between.
  4. A broken frame closes the connection with one log line. Nothing a peer sends may raise past `buffer_updated`.

How it receives: all connections of a loop share one buffer (`Receiver`). Whole frames are worked on in place; the start of a frame that is
not complete moves to a buffer of its own, so an idle connection holds no memory; large frames mostly stay where they were received. What
is left behind whole frames that came together goes before what is received next instead (`_start`): who sends many requests in a row has
one read for the next ones, and not one for the end of a frame and one for the others. Only once: a frame that comes in small pieces is not
copied again with each.
A handler must not keep a view of a frame after it returns.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Protocol, cast

from barnabas import limits
from barnabas.errors import FrameTooLarge, ProtocolError
from barnabas.protocol.fetch import Copied
from barnabas.server.fastpath.recogniser import Recogniser
from barnabas.server.outbox import Outbox, Part, Region
from barnabas.server.pinned_regions import PinnedFiles
from barnabas.server.receiver import Receiver
from barnabas.server.request_order import Effect, effect_of, may_begin
from barnabas.server.write_waiters import WriteWaiters
from barnabas.storage.os_errors import EXHAUSTED

if TYPE_CHECKING:
    from barnabas.quota.budget import Budget, Paid
    from barnabas.security.access import Access

logger = logging.getLogger(__name__)
_SIZE = Struct(">i")
_API = Struct(">hh")  # key and version, with which a frame begins
_NOTHING = memoryview(b"")
ORDER = "order"  # why a connection is not read whose next request waits for those before it
LARGE = limits.LARGE_FRAME_BYTES // 2  # a frame beyond gets a buffer of the receiver's, which it fills by half at least


class Answer:
    """The place of one request's answer in the order of its connection; `parts` is None until it is known."""

    __slots__ = ("parts", "size")

    def __init__(self) -> None:
        self.parts: list[Part] | None = None
        self.size = 0  # what it takes while it waits for those before it


def _cost(part: Part) -> int:
    """What a part of an answer takes that is not sent at once."""
    if isinstance(part, Region):
        return limits.HELD_REGION_BYTES
    return part.size if isinstance(part, Copied) else len(part)


class LogIn(Protocol):
    """Finds out who is behind a connection (`authentication/`)."""

    def admits(self, frame: memoryview) -> bool:
        """Whether the dispatcher is to work on a frame; else it is part of the log-in, and done with."""
        ...

    def begin_again(self, frame: memoryview) -> bool:
        """Whether a handshake of a connection that is logged in begins another log-in, and is answered."""
        ...


class Mute(Protocol):
    """Keeps a connection from being read, because its client is over a quota (`quotas/`)."""

    @property
    def left_ms(self) -> int: ...
    def extend(self, wait_ms: float) -> None: ...
    def end(self) -> None: ...


class Dispatcher(Protocol):
    """What a connection needs from the broker."""

    pinned_files: PinnedFiles
    write_waiters: WriteWaiters

    def dispatch(self, connection: Connection, data: memoryview, position: int, stop: int) -> int:
        """Handle the request of `data` whose size stands at `position` and which ends at `stop`, or several from there on.

        Returns:
            Where the next request begins: `stop`, or behind it.

        Raises:
            ProtocolError: the connection has to be closed.
        """
        ...

    def connection_opened(self, connection: Connection) -> str | None:
        """Count it in; a reason to refuse it, or None."""
        ...

    def connection_closed(self, connection: Connection) -> None: ...


class Connection(asyncio.BufferedProtocol):
    """The asyncio protocol of one client; made by a listener's factory."""

    def __init__(self, dispatcher: Dispatcher, receiver: Receiver, listener: str, loop: asyncio.AbstractEventLoop) -> None:
        self.listener = listener
        self.peer_host = "unknown"
        self.peer_port = 0
        self.local_port = 0
        self.principal = "User:ANONYMOUS"
        self.groups: tuple[str, ...] = ()  # of the principal: "Group:finance"
        self.access: Access | None = None  # what the principal may do, as the authorizer said last
        self.by_token = False  # whether a delegation token was shown
        self.authentication: LogIn | None = None  # asked about each frame, until it is known who is there
        self.login: LogIn | None = None  # where the listener wants one
        self.max_frame_bytes = receiver.max_frame_bytes
        self.client_software = ("unknown", "unknown")
        self.last_active = loop.time()
        self.on_close: list[Callable[[], None]] = []
        self._dispatcher = dispatcher
        self._receiver = receiver
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._outbox: Outbox | None = None
        self._answers: deque[Answer] = deque()  # of requests that have not ended, and of those behind them; the first one has not
        self._effect = Effect.READS  # of all requests in `_answers`
        self._start = b""  # of an unfinished frame that others came before; then there is no `_partial`
        self._partial: memoryview | None = None  # one unfinished frame with its size in front
        self._filled = 0
        self._lent: memoryview | None = None  # the receiver's buffer that `_partial` is a part of
        self._expected = 0  # bytes of the next frame, if it is as large as the last and that was large
        self.has_small_frames = True  # the last was one
        self._paused_for: set[str] = set()
        self._held_bytes = 0  # of answers that wait for those before them
        self._backlog = _NOTHING  # frames received while reading was paused, in memory of their own
        self._working = False
        self._is_put_off = False  # the request at hand
        self._flushing = False
        self._when_sent: Callable[[], None] | None = None
        self.recognisers: list[Recogniser[Connection]] = []  # the fast paths, at most one for each API
        self.budget: Budget | None = None  # of the client whose request is at hand, where there are quotas
        self.started_ns = 0  # when the request at hand was taken up, where it has a budget
        self.paid: Paid | None = None
        self.mute: Mute | None = None  # of a client that was over a quota
        self.is_asked: set[str] = set()  # the kinds of quotas that this connection was asked for what its client owes already
        self.closed = False

    @property
    def peer(self) -> str:
        return f"{self.peer_host}:{self.peer_port}"

    def forget_learnt(self) -> None:
        """Have every fast path forget what it learnt; the general way handles the next requests."""
        for recogniser in self.recognisers:
            recogniser.forget()

    # --- the loop's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by inheritance
        peer = transport.get_extra_info("peername")
        if peer:
            self.peer_host, self.peer_port = peer[0], peer[1]
        self.local_port = (transport.get_extra_info("sockname") or ("", 0))[1]
        descriptor = transport.get_extra_info("socket").fileno()
        make_outbox = transport.get_extra_info("outbox", Outbox)  # a simulated transport brings its own
        pinned_files, write_waiters = self._dispatcher.pinned_files, self._dispatcher.write_waiters
        self._outbox = make_outbox(self._loop, descriptor, pinned_files, write_waiters, self._on_room, self._on_send_error)
        refused = self._dispatcher.connection_opened(self)
        if refused is not None:
            logger.warning("event=connection-refused peer=%s reason=%r", self.peer, refused)
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._release()
        self._transport = None  # with TLS it refers to this connection: neither is to wait for the garbage collector

    def eof_received(self) -> bool:
        return False

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._partial is not None:
            return self._partial[self._filled :]
        if self._expected and not self._start:
            return self._receiver.large[: self._expected]
        buffer = self._receiver.small if self.has_small_frames else self._receiver.buffer
        if self._start:
            size = len(self._start)
            buffer[:size] = self._start
            return buffer[size:]
        return buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self.closed:
            return
        if self._partial is None:
            self.last_active = self._loop.time()  # not for each byte: a request that never ends does not keep its connection open
            if self._start:
                before, self._start = len(self._start), b""
                self._receiver.give_back(self, before)
                self._take_frames(self._receiver.buffer[: before + nbytes])
            elif self._expected:
                self._take_frames(self._receiver.large[:nbytes], in_large=True)
            else:
                self._take_frames(self._receiver.buffer[:nbytes])
        else:
            self._filled += nbytes
            if self._filled == len(self._partial):
                self._take_partial()
        self.flush()

    # --- answers

    def expect_answer(self, effect: Effect = Effect.CHANGES) -> Answer:
        """Reserve the next place in the order of answers, for a request that has not ended.

        Args:
            effect: what it does, which tells the requests behind it whether they have to wait.
        """
        answer = Answer()
        if not self._answers:
            self._effect = effect
        self._answers.append(answer)
        if len(self._answers) >= limits.MAX_REQUESTS_IN_FLIGHT:
            self.pause("in-flight")
        return answer

    def send(self, parts: list[Part]) -> None:
        """Answer the request at hand, of which nothing waits any more."""
        outbox = self._outbox
        if outbox is None:
            return
        if self._answers:
            self._hold(outbox, self.expect_answer(), parts)
            return
        for part in parts:
            outbox.push(part)
        if outbox.waiting_bytes > limits.MAX_UNSENT_BYTES:
            self._check_unsent(outbox)

    def flush(self) -> None:
        """Have what was answered leave now, and not with the answers of the other requests that came with it."""
        if self._outbox is not None:
            self._outbox.flush()
            if self._when_sent is not None:
                self._tell_sent()

    def when_sent(self, call: Callable[[], None] | None) -> None:
        """Have it called in a turn of the loop behind the one in which all answers so far have left; it takes the place of the last."""
        self._when_sent = call

    def _tell_sent(self) -> None:
        if self._outbox is not None and not self._outbox.waiting_bytes:
            self._loop.call_soon(self._call_when_sent)

    def _call_when_sent(self) -> None:
        if self._when_sent is None or self._outbox is None or self._outbox.waiting_bytes:
            return  # another answer is on its way meanwhile
        call, self._when_sent = self._when_sent, None
        call()

    def complete(self, answer: Answer, parts: list[Part], *, among_many: bool = False) -> None:
        """The answer of a request that had to wait is there.

        Args:
            among_many: others come in the same turn of the loop, so it is sent with them at the end of it; not for file regions.
        """
        outbox = self._outbox
        if outbox is None:
            return
        if self._answers and self._answers[0] is answer:
            answer.parts = parts
        else:
            self._hold(outbox, answer, parts)
        while self._answers and self._answers[0].parts is not None:
            first = self._answers.popleft()
            self._held_bytes -= first.size
            for part in first.parts or ():
                outbox.push(part)
        if among_many and not self._paused_for:
            if not self._flushing:
                self._flushing = True
                self._loop.call_soon(self._flush_all)
        elif not self._working:
            outbox.flush()
        self._check_unsent(outbox)
        if not self._answers and ORDER in self._paused_for:
            self._loop.call_soon(
                self.resume, ORDER
            )  # not in here: the caller may be in the middle of what the next request changes
        if "in-flight" in self._paused_for and len(self._answers) < limits.MAX_REQUESTS_IN_FLIGHT // 2:
            self.resume("in-flight")
        if "held" in self._paused_for and self._held_bytes < limits.MAX_UNSENT_BYTES // 2:
            self.resume("held")

    def _hold(self, outbox: Outbox, answer: Answer, parts: list[Part]) -> None:
        """An answer waits for those before it; where they take much, no more requests are read."""
        answer.parts = outbox.hold(parts)
        answer.size = sum(_cost(part) for part in answer.parts)
        self._held_bytes += answer.size
        if self._held_bytes > limits.MAX_UNSENT_BYTES:
            self.pause("held")

    def _flush_all(self) -> None:
        self._flushing = False
        self.flush()

    def close(self) -> None:
        """Drop the connection with what waits in it."""
        if self._transport is not None:
            self._transport.abort()
        self._release()

    def close_after_answers(self) -> None:
        """Read no more; close once everything answered so far is sent."""
        self.pause("closing")
        self.flush()
        if self._outbox is None or not self._outbox.waiting_bytes:
            self.close()

    def hand_over(self) -> int | None:
        """Read no more: who gets this duplicate of the descriptor does, until `take_back` or the end. None where that cannot be (TLS)."""
        outbox = self._outbox
        if type(outbox) is not Outbox or outbox.waiting_bytes or self._answers or self._paused_for:
            return None
        if self._partial is not None or self._start:
            return None
        if self.authentication is not None:
            return None
        self.pause("handed over")
        return os.dup(outbox.descriptor)

    def take_back(self, received: bytes) -> None:
        """Go on reading, after what was read elsewhere and not worked on."""
        self._keep_back(memoryview(bytearray(received + self._take_backlog())))
        self.resume("handed over")

    # --- pausing

    def put_off(self, reason: str) -> None:
        """Leave the request at hand, of which nothing was done, until `resume`; then it comes again."""
        self._is_put_off = True
        self.pause(reason)

    def pause(self, reason: str) -> None:
        if not self._paused_for and self._transport is not None and not self.closed:
            self._transport.pause_reading()
        self._paused_for.add(reason)

    def resume(self, reason: str) -> None:
        self._paused_for.discard(reason)
        if self.closed or self._transport is None:
            return
        if self._paused_for:
            if self._outbox is not None and not self._working:
                self._outbox.flush()  # an answer that was held: who is muted gets it all the same
            return
        if self._backlog:
            self._take_frames(self._take_backlog(), is_own=True)
        if self._outbox is not None:
            self._outbox.flush()
        if not self._paused_for and not self.closed:
            self._transport.resume_reading()

    # --- inside

    def _take_frames(self, data: memoryview, *, in_large: bool = False, is_own: bool = False) -> None:
        """Work on whole frames, as far as they may be worked on now, and keep the rest.

        Args:
            in_large: `data` is the start of the receiver's large buffer.
            is_own: `data` is nobody's but this connection's, and may be kept.
        """
        self._working = True
        try:
            position, size = self._take_whole(data)
        except ProtocolError as error:
            self._fail(error)
            return
        except Exception:  # a fault of ours must cost this connection only, and be seen
            logger.exception("event=request-failed peer=%s", self.peer)
            self.close()
            return
        finally:
            self._working = False
        if self.closed:
            return
        if size is None:
            self._put_off(data[position:], is_own=is_own)
            return
        self._expected = size + 4 if LARGE < size + 4 <= limits.LARGE_FRAME_BYTES else 0
        self.has_small_frames = size <= limits.SMALL_FRAME_BYTES
        if position < len(data):
            self._leave(data[position:], size, is_first=not position, in_large=in_large)

    def _take_whole(self, data: memoryview) -> tuple[int, int | None]:
        """Where the first frame begins that is left, and its size or that of the last one; None where it is whole and has to wait."""
        position, end, size, left = 0, len(data), 0, limits.MAX_REQUESTS_PER_TURN
        dispatch = self._dispatcher.dispatch
        while end - position >= 4:
            (size,) = _SIZE.unpack_from(data, position)
            if size < 0 or size > self.max_frame_bytes:
                raise FrameTooLarge(size, self.max_frame_bytes)
            stop = position + 4 + size
            if stop > end:
                break
            if self._answers and not self._paused_for and not self._may_begin(data, position, size):
                self.pause(ORDER)
            if self._paused_for:
                return position, None
            behind = dispatch(self, data, position, stop)
            if self.closed:
                break
            if self._is_put_off:
                self._is_put_off = False
                return position, None
            position = behind
            if behind == stop:
                left -= 1
                if not left:
                    self._wait_for_turn()
        return position, size

    def _leave(self, rest: memoryview, size: int, *, is_first: bool, in_large: bool) -> None:
        """Nothing can be done with the `rest` until more comes: the start of a frame of `size` bytes, or less than tells its size."""
        is_small = len(rest) < _SIZE.size or (size <= limits.MAX_RUN_BYTES and 2 * len(rest) <= len(self._receiver.buffer))
        if is_small and not is_first:
            self._start = bytes(rest)
            self._receiver.take(self, len(self._start))
        else:
            self._keep(rest, stays=in_large and is_first)

    def _may_begin(self, data: memoryview, position: int, size: int) -> bool:
        """Whether the frame at `position` may be worked on while those before it have not ended."""
        if size < _API.size:
            return False
        return may_begin(effect_of(*_API.unpack_from(data, position + _SIZE.size)), self._effect)

    def _put_off(self, rest: memoryview, *, is_own: bool) -> None:
        """Work on what was received when nothing pauses this connection any more."""
        self._keep_back(rest if is_own else memoryview(bytearray(rest)))
        if self._transport is not None:
            self._transport.pause_reading()  # uvloop begins to read whatever `connection_made` has asked for

    def _keep_back(self, rest: memoryview) -> None:
        self._backlog = rest
        self._receiver.keep(len(rest))

    def _take_backlog(self) -> memoryview:
        backlog, self._backlog = self._backlog, _NOTHING
        self._receiver.let_go(len(backlog))
        return backlog

    def _wait_for_turn(self) -> None:
        """Let others have theirs."""
        self.pause("turn")
        self._loop.call_soon(self.resume, "turn")

    def _keep(self, start: memoryview, *, stays: bool) -> None:
        """Keep the start of an unfinished frame, in the receiver's large buffer if it `stays` at the beginning of that."""
        wanted = 4 + _SIZE.unpack_from(start)[0] if len(start) >= 4 else 4
        if LARGE < wanted <= limits.LARGE_FRAME_BYTES:
            self._lent = self._receiver.take_large() if stays else self._receiver.lend()
        else:
            stays = False
            self._lent = self._receiver.lend_grown(wanted) if wanted > LARGE else None
        if self._lent is not None:
            self._partial = self._lent[:wanted]
        else:
            self._partial = memoryview(bytearray(min(wanted, len(start) + limits.FRAME_GROWTH_BYTES)))
        if not stays:
            self._partial[: len(start)] = start
        self._filled = len(start)
        self._receiver.take(self, len(self._partial))

    def _grow(self) -> None:
        assert self._partial is not None
        wanted = 4 + _SIZE.unpack_from(self._partial)[0]
        grown = memoryview(bytearray(min(wanted, 2 * self._filled + limits.FRAME_GROWTH_BYTES)))
        grown[: self._filled] = self._partial
        self._receiver.take(self, len(grown) - len(self._partial))
        self._partial = grown

    def _take_partial(self) -> None:
        partial = self._partial
        assert partial is not None
        (size,) = _SIZE.unpack_from(partial)
        if size < 0 or size > self.max_frame_bytes:
            self._fail(FrameTooLarge(size, self.max_frame_bytes))
        elif len(partial) == 4 + size:
            self._partial = None
            self.last_active = self._loop.time()
            lent, self._lent = self._lent, None
            self._take_frames(partial)
            if lent is not None:
                self._receiver.hand_in(lent)
            elif len(partial) > limits.LARGE_FRAME_BYTES:
                self._receiver.hand_in(partial)
            self._receiver.give_back(self, len(partial))
        else:
            self._grow()

    def _check_unsent(self, outbox: Outbox) -> None:
        if outbox.waiting_bytes > limits.MAX_UNSENT_BYTES:
            outbox.flush()
            if outbox.waiting_bytes > limits.MAX_UNSENT_BYTES:
                self.pause("unsent")

    def _on_room(self) -> None:
        if "closing" in self._paused_for:
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

    def _fail(self, error: ProtocolError) -> None:
        logger.warning(
            "event=connection-closed peer=%s client=%r reason=%r", self.peer, "/".join(self.client_software), str(error)
        )
        self.close()

    def _release(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._take_backlog()
        if self._start:
            self._receiver.give_back(self, len(self._start))
            self._start = b""
        if self._partial is not None:
            self._receiver.give_back(self, len(self._partial))
            self._partial = None
            if self._lent is not None:
                self._receiver.hand_in(self._lent)
                self._lent = None
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
