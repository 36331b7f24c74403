"""Producer ids for transactional ids: a few are ready, because a coordinator decides without waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

from barnabas.errors import ErrorCode, KafkaError

AT_HAND = 2  # a decision takes at most one id


class ProducerIdBlock:
    """`ProducerIds` of the coordinator, over the blocks that the controller gives to this broker.

    Args:
        least: no lower id may be given out, because records of a promoted copy may have it; it grows while ids are at hand.
    """

    def __init__(self, next_id: Callable[[], Awaitable[int]], least: Callable[[], int]) -> None:
        self._next_id = next_id
        self._least = least
        self._ids: deque[int] = deque()

    @property
    def least(self) -> int:
        return self._least()

    @property
    def has_one(self) -> bool:
        self._drop_low()
        return bool(self._ids)

    async def fill(self) -> None:
        self._drop_low()
        while len(self._ids) < AT_HAND:
            self._ids.append(await self._next_id())

    def take(self) -> int:
        self._drop_low()
        if not self._ids:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self._ids.popleft()

    def _drop_low(self) -> None:
        while self._ids and self._ids[0] < self._least():
            self._ids.popleft()
