"""The answers of one connection that wait for earlier answers.

Clients match answers to requests by the order of the answers, so an answer leaves when all earlier ones have left. `AnswerOrder` keeps the
places of the unfinished requests and of the requests behind them. `Connection` sends the answers.
"""

from __future__ import annotations

from collections import deque
from struct import Struct

from barnabas import limits
from barnabas.protocol.fetch import Copied
from barnabas.server.outbox import Outbox, Part, Region
from barnabas.server.receiver import Reader
from barnabas.server.request_order import Effect, effect_of, may_begin

ORDER = "order"  # the reason to pause reading: the next request waits for earlier ones
_API = Struct(">hh")  # API key and version, at the start of a frame


class Answer:
    """The place of one request's answer; `parts` is None until the answer is known."""

    __slots__ = ("parts", "size")

    def __init__(self) -> None:
        self.parts: list[Part] | None = None
        self.size = 0  # bytes; counts while the answer waits for earlier ones


class AnswerOrder:
    """The places of one connection.

    Attributes:
        waiting: the places of the requests, in their order; the first request is unfinished.
        effect: the effect of all requests in `waiting` together.
        held_bytes: memory of the known answers in `waiting`.
    """

    __slots__ = ("effect", "held_bytes", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Answer] = deque()
        self.effect = Effect.READS
        self.held_bytes = 0

    def hold(self, connection: Reader, outbox: Outbox, answer: Answer, parts: list[Part]) -> None:
        """Keep the `parts` of an answer until the earlier answers have left; pause the connection if they take much memory."""
        answer.parts = outbox.hold(parts)
        answer.size = sum(_cost(part) for part in answer.parts)
        self.held_bytes += answer.size
        if self.held_bytes > limits.MAX_UNSENT_BYTES:
            connection.pause("held")

    def may_begin(self, data: memoryview, position: int, size: int) -> bool:
        """Whether the frame of `size` bytes at `position` may be handled while requests in `waiting` are unfinished."""
        if size < _API.size:
            return False
        return may_begin(effect_of(*_API.unpack_from(data, position)), self.effect)


def _cost(part: Part) -> int:
    """The bytes of memory that a kept part of an answer takes."""
    if isinstance(part, Region):
        return limits.HELD_REGION_BYTES
    return part.size if isinstance(part, Copied) else len(part)
