"""Creates missing topics that a request names; the request waits only a short time.

The controller may be busy, paused or down, and the client's other requests wait on the same connection. Clients retry if a topic does
not exist yet; with Kafka's brokers they always have to.

Rules
  1. Only one request for a topic goes to the controller at a time, however many clients ask for it.
  2. The creation continues after the clients got the answer that the topic does not exist.
  3. At most `MAX_TOPICS_IN_THE_MAKING` are created at once; requests for further topics are dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from barnabas import limits
from barnabas.errors import Closed, ErrorCode, KafkaError

WAIT_S = 1.0
# No topic was created, or the outcome is unknown: the client must retry.
NOT_DONE = {ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT}
logger = logging.getLogger(__name__)

Told = dict[str, KafkaError | None]


class AutoTopicCreation:
    """See the module.

    Args:
        make: creates the topics; its result has None for each topic that exists afterwards.
    """

    def __init__(self, make: Callable[[Sequence[str]], Awaitable[Told]]) -> None:
        self._make = make
        self._under_way: dict[str, asyncio.Task[Told]] = {}

    async def want(self, names: Iterable[str]) -> Told:
        """None for each topic that exists, UNKNOWN_TOPIC_OR_PARTITION for one that may exist later, or the error of its creation."""
        wanted = dict.fromkeys(names)
        room = max(0, limits.MAX_TOPICS_IN_THE_MAKING - len(self._under_way))
        begun = [name for name in wanted if name not in self._under_way][:room]
        if begun:
            task = asyncio.ensure_future(self._made(begun))
            self._under_way.update(dict.fromkeys(begun, task))
            task.add_done_callback(lambda done: self._end(begun, done))
        tasks = {name: self._under_way[name] for name in wanted if name in self._under_way}
        if tasks:
            await asyncio.wait(set(tasks.values()), timeout=WAIT_S)
        told = {name: task.result()[name] for name, task in tasks.items() if task.done() and not task.cancelled()}
        return {name: told.get(name, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)) for name in wanted}

    def is_under_way(self, name: str) -> bool:
        return name in self._under_way

    async def close(self) -> None:
        """End all running creations."""
        tasks = set(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _made(self, names: Sequence[str]) -> Told:
        try:
            told = await self._make(names)
        except KafkaError as error:
            told = dict.fromkeys(names, error)
        return {name: _as_told(told[name]) for name in names}

    def _end(self, names: Iterable[str], task: asyncio.Task[Told]) -> None:
        for name in names:
            del self._under_way[name]
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, Closed):
            logger.error("event=topics-not-made", exc_info=error)


def _as_told(error: KafkaError | None) -> KafkaError | None:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) if error is not None and error.code in NOT_DONE else error
