"""The shared parts of the handlers: work in threads, rights, errors of the cluster.

Rules
  1. A caller needs READ on the topic of the configs to see connectors, and WRITE to change them. Callers that do not log in may do all.
  2. No answer is 409 because workers come or go: every worker answers every request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from barnabas.client.errors import ClientError
from barnabas.client.keyed_topic import Contended, KeyedTopicError
from barnabas.connect.herder import errors
from barnabas.connect.levels import Levels
from barnabas.connect.worker import Requests
from barnabas.digits import is_number
from barnabas.engine.topic_rights import check_topic_right
from barnabas.errors import BarnabasError, KafkaError
from barnabas.security.acls import Operation
from barnabas.security.rights import ClusterRights
from barnabas.web.routing import Caller, HttpError

R = TypeVar("R")
THREADS = 16


class Surface:
    """Args:
    topic: of the configs.
    rights: None if callers do not log in.
    """

    def __init__(self, worker: Requests, levels: Levels, url: str, topic: str, rights: ClusterRights | None) -> None:
        self.worker, self.levels, self.url = worker, levels, url
        self._topic, self._rights = topic, rights
        self._threads = ThreadPoolExecutor(THREADS, "connect")

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, work: Callable[[], R]) -> R:
        """The result of work that blocks. Raises HttpError."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except Contended as error:
            raise HttpError(503, str(error)) from None
        except KeyedTopicError as error:
            raise errors.bad(str(error)) from None
        except (ClientError, KafkaError) as error:
            raise HttpError(503, f"the cluster does not answer: {error}") from None
        except BarnabasError as error:
            raise errors.unusable(str(error)) from None

    async def check(self, caller: Caller, operation: Operation) -> None:
        """Raises HttpError 403, see rule 1, or 503."""
        await check_topic_right(self._rights, caller, operation, self._topic)


def task_number(text: str) -> int:
    """The number of a task in a path. Raises HttpError 404."""
    if not is_number(text, 2**31 - 1):
        raise HttpError(404, "HTTP 404 Not Found")
    return int(text)
