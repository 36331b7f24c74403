"""Looks at live tables from an event loop: many queries of one row share a look, and none of them needs a thread.

Rules
  1. A look that begins after a query serves it. Its client has the caller's settings, so the broker checks the caller's right to read.
  2. Nothing here fails a query. The session's thread runs it if there is no answer: after an error, after PATIENCE_S, with more than
     MOST_BYTES of new records, with rows that a thread uses for so long.
  3. The loop never blocks on a lock.
  4. At most LOOKS_AT_ONCE looks at a table are under way for a caller. While one waits for the leaders, the loop answers the queries of
     another.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import msgspec
import pyarrow as pa

from barnabas import limits
from barnabas.client.asynchronous import AsyncClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError, LoginFailed
from barnabas.client.operations import fetch_calls, known
from barnabas.client.results import Fetched
from barnabas.errors import BarnabasError
from barnabas.sql.live.decoded import DecodedRows, Made
from barnabas.sql.live.reading import TableChanged, received, take
from barnabas.sql.live.rows import LiveRows
from barnabas.sql.live.tables import Followed, LiveTables, reaches

logger = logging.getLogger(__name__)
PATIENCE_S = 0.5
LOCKED_S = 0.001  # between two tries to have the rows that a thread uses; uvloop rounds a shorter time to none
REST_S, LONG_REST_S = 1.0, 60.0  # after a look without an answer in time, and after a log-in that was refused
LOOKS_AT_ONCE = 2
LEARNT_S = 1.0  # so long nothing asks whether the leaders of the partitions are known
MOST_BYTES = 128 << 10  # of new records that the loop decodes itself
MOST_ROW_BYTES = 64 << 10  # of a row that the loop makes; a larger one would keep the other clients waiting
Answer = Callable[[bool, Any], None]


class TooLarge(Exception):
    """The row is for a thread."""


class Question(msgspec.Struct, frozen=True):
    """A query for the row of a key.

    Args:
        awaited: offsets that the rows must reach, by partition.
        definition, kind, make: the form of the row, as `DecodedRows.of_key` takes it.
        answer: called once: whether there is an answer, and the form of the row or None without a row.
    """

    key: bytes
    awaited: Mapping[int, int]
    definition: object
    kind: Hashable
    make: Callable[[pa.RecordBatch], Made]
    answer: Answer


class Look:
    """Looks at one table for one caller."""

    def __init__(self, client: AsyncClient, live: LiveTables, followed: Followed, topic: str, topic_id: UUID) -> None:
        self._client, self._live, self.followed, self._topic, self._topic_id = client, live, followed, topic, topic_id
        self._config = replace(client.config, read_committed=True, fetch_max_wait_ms=0, fetch_min_bytes=0, interruption=None)
        self._waiting: list[Question] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._rests_until = self._learnt_until = -math.inf
        self._asking = 0  # looks that await the cluster
        self._late: set[int] = set()  # looks that take too long, by the identity of their questions
        self._is_beginning = False  # a task will take the questions that wait

    @property
    def is_busy(self) -> bool:
        return bool(self._tasks)

    def close(self) -> None:
        """Give no more answers."""
        for each in self._tasks:
            each.cancel()

    def ask(self, question: Question) -> bool:
        """Whether the question will be answered."""
        loop = asyncio.get_running_loop()
        if self._late or loop.time() < self._rests_until:
            return False
        self._waiting.append(question)
        if not self._is_beginning and len(self._tasks) < LOOKS_AT_ONCE:
            self._is_beginning = True
            task = loop.create_task(self._run())
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        return True

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task in self._tasks:  # it was cancelled before it began
            self._tasks.remove(task)
            self._is_beginning = False
            self._drop(self._waiting)

    async def _run(self) -> None:
        self._is_beginning = False
        asked: list[Question] = []
        try:
            while self._waiting:
                asked, self._waiting = self._waiting, []
                answers = await self._looked(asked)
                answered = asked[: len(answers)]
                del asked[: len(answers)]
                self._drop(asked)
                for each, (is_known, form) in zip(answered, answers, strict=True):
                    _tell(each, form, is_known=is_known)
        except Exception:
            logger.exception("event=sql-look-failed topic=%s", self._topic)
        finally:
            self._tasks.remove(asyncio.current_task())  # type: ignore[arg-type]  # at once: the next question begins another
            self._drop(asked)
            if not self._tasks:
                self._drop(self._waiting)

    async def _looked(self, asked: list[Question]) -> list[tuple[bool, Any]]:
        """An answer for each question that still waits, or none."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(PATIENCE_S, self._give_up, asked)
        try:
            return await self._look(asked)
        except TableChanged:
            return []
        except BarnabasError as error:
            self._rests_until = loop.time() + (LONG_REST_S if isinstance(error, LoginFailed) else REST_S)
            return []
        finally:
            timer.cancel()
            self._late.discard(id(asked))

    def _give_up(self, asked: list[Question]) -> None:
        """The answer takes too long: threads wait for it, with the statements' own limits."""
        self._late.add(id(asked))
        if self._asking:
            self._rests_until = asyncio.get_running_loop().time() + REST_S
        self._drop(asked)
        self._drop(self._waiting)

    def _drop(self, asked: list[Question]) -> None:
        dropped = asked[:]
        asked.clear()
        for each in dropped:
            _tell(each, None, is_known=False)

    async def _look(self, asked: Sequence[Question]) -> list[tuple[bool, Any]]:
        """An answer for each question that still waits when the look has ended; none if the rows are not at hand."""
        rows, client = self.followed.rows, self._client
        if rows is None:
            return []
        positions = {number: each.position for number, each in list(rows.partitions.items())}
        await self._learn(list(positions))
        topic = client.cluster.topics.get(self._topic)
        if topic is None or topic.topic_id != self._topic_id or len(topic.partitions) != len(positions):
            client.cluster.forget(self._topic)
            return []
        answers = await self._fetched(positions)
        if sum(len(each.records) for each in answers.values()) > MOST_BYTES:
            return []
        while not self.followed.lock.acquire(blocking=False):
            await asyncio.sleep(LOCKED_S)
            if not asked:
                return []
        try:
            if self.followed.rows is not rows or not self._taken(rows, positions, answers):
                return []
            decoded = self._live.decoded(rows)
            size = decoded.size
            found = [_answer(rows, decoded, each) for each in asked]
            if decoded.size > size:
                self._live.room(self.followed)
            return found
        finally:
            self.followed.lock.release()

    async def _fetched(self, positions: Mapping[int, int]) -> dict[int, Fetched]:
        """The answer of each partition. Raises ClientError, PartitionError, TableChanged."""
        cluster = self._client.cluster
        calls = fetch_calls(self._config, cluster, self._topic, positions)
        self._asking += 1
        try:
            if len(calls) == 1:
                found = [await self._client.request(calls[0][0])]
            else:
                found = await asyncio.gather(*(self._client.request(call) for call, _ in calls))
        except ClientError:
            cluster.forget(self._topic)
            raise
        finally:
            self._asking -= 1
        return {
            partition: received(cluster, self._topic, partition, answer)
            for (_, partitions), answer in zip(calls, found, strict=True)
            for partition in partitions
        }

    async def _learn(self, partitions: list[int]) -> None:
        """Know the leaders of the partitions. Raises BarnabasError."""
        now = asyncio.get_running_loop().time()
        if now > self._learnt_until or self._topic not in self._client.cluster.topics:
            await self._client.run(known(self._config, self._client.cluster, [(self._topic, each) for each in partitions]))
            self._learnt_until = now + LEARNT_S

    def _taken(self, rows: LiveRows, positions: Mapping[int, int], answers: Mapping[int, Fetched]) -> bool:
        """Whether the rows have all that was committed when the look began."""
        changes = rows.changes
        for partition, answer in answers.items():
            take(rows, self._topic, partition, positions[partition], answer)
            if rows.partitions[partition].position < answer.last_stable_offset:
                return False
        return rows.changes == changes or rows.size <= self._live.room(self.followed)


def _tell(asked: Question, form: Any, *, is_known: bool) -> None:
    """One client's fault must not cost the others their answers."""
    try:
        asked.answer(is_known, form)
    except Exception:
        logger.exception("event=sql-row-not-told")


def _answer(rows: LiveRows, decoded: DecodedRows, asked: Question) -> tuple[bool, Any]:
    if not rows.is_canonical or not reaches(rows, asked.awaited):
        return False, None
    if not rows.having((asked.key,)):
        return True, None

    def make(records: pa.RecordBatch) -> Made:
        if len(records.column("value")[0].as_py()) > MOST_ROW_BYTES:
            raise TooLarge
        return asked.make(records)

    try:
        form = decoded.of_key(rows, asked.key, asked.definition, asked.kind, make)
    except Exception:  # noqa: BLE001 - the thread meets it too, and tells the client
        return False, None
    return form is not None, form


class AtOnce:
    """The looks of one event loop."""

    def __init__(self) -> None:
        self._clients: dict[ClientConfig, AsyncClient] = {}
        self._looks: dict[tuple[ClientConfig, Followed], Look] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def look(self, config: ClientConfig, live: LiveTables, followed: Followed, topic: str, topic_id: UUID) -> Look | None:
        """The look at a table for the callers with these settings; None if there are too many."""
        found = self._looks.get((config, followed))
        if found is not None:
            return found
        client = self._client(config)
        if client is None:
            return None
        if len(self._looks) >= limits.MAX_SQL_LIVE_TABLES:
            self._looks = {key: each for key, each in self._looks.items() if each.is_busy}
        found = self._looks[config, followed] = Look(client, live, followed, topic, topic_id)
        return found

    def _client(self, config: ClientConfig) -> AsyncClient | None:
        found = self._clients.get(config)
        if found is None and len(self._clients) >= limits.MAX_SQL_LOOKING_CALLERS and not self._dismiss():
            return None
        if found is None:
            found = self._clients[config] = AsyncClient(replace(config, interruption=None))
        return found

    def _dismiss(self) -> bool:
        """Forget the oldest caller whose looks are at rest; whether there is one."""
        busy = {config for (config, _), look in self._looks.items() if look.is_busy}
        oldest = next((each for each in self._clients if each not in busy), None)
        if oldest is None:
            return False
        self._looks = {key: look for key, look in self._looks.items() if key[0] != oldest}
        task = asyncio.get_running_loop().create_task(self._clients.pop(oldest).close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return True

    async def close(self) -> None:
        """Close the connections."""
        for look in self._looks.values():
            look.close()
        for client in self._clients.values():
            await client.close()
        self._clients.clear()
        self._looks.clear()
