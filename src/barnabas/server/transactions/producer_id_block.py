"""Producer ids for transactional ids: a few are ready, because a coordinator decides without waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable

from barnabas.errors import ErrorCode, KafkaError

AT_HAND = 2  # a decision takes at most one id


class ProducerIdBlock:
    """`ProducerIds` of the coordinator, over the blocks that the controller gives to this broker."""

    def __init__(self, next_id: Callable[[], Awaitable[int]]) -> None:
        self._next_id = next_id
        self._ids: deque[int] = deque()

    @property
    def has_one(self) -> bool:
        return bool(self._ids)

    async def fill(self) -> None:
        while len(self._ids) < AT_HAND:
            self._ids.append(await self._next_id())

    def take(self) -> int:
        if not self._ids:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self._ids.popleft()
