"""The auditor: the first client of a restarted broker. It reads all records and checks them against the histories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.errors import ClientError
from barnabas.errors import ErrorCode, KafkaError
from barnabas.testing.simulation.clients import EARLIEST, LATEST, client_config, records_of
from barnabas.testing.simulation.history import Found, PartitionHistory, Register, TopicPartition, Violation

if TYPE_CHECKING:
    from barnabas.testing.simulation.group_history import GroupHistory
    from barnabas.testing.simulation.loop import World

AUDITOR = "auditor"
ROTTEN_PATIENCE_MS = 100  # short, because the broker refuses a damaged batch on every attempt


class Auditor:
    """One audit.

    Args:
        address: the address of a broker.
        crashed: the broker crashed instead of stopping cleanly.
        may_lose_tail: topics that do not flush may have lost the records that were not synced.
    """

    def __init__(self, world: World, address: str, *, crashed: bool, may_lose_tail: bool) -> None:
        self._world = world
        self._address = address
        self._crashed = crashed
        self._may_lose_tail = may_lose_tail
        self._client = AsyncClient(client_config(address, AUDITOR))

    async def read_partitions(self, histories: dict[TopicPartition, PartitionHistory]) -> None:
        for key, history in list(histories.items()):
            start = (await self._client.list_offsets({key: EARLIEST}))[key].offset
            end = (await self._client.list_offsets({key: LATEST}))[key].offset
            self._world.note(f"audit {history.name} [{start}, {end})")
            history.restarted(crashed=self._crashed, may_lose_tail=self._may_lose_tail, start=start, end=end)
            history.started_at(start, self._world.now_ms())
            if history.rotten:
                await self._read_what_is_left(key, history, start, end)
            else:
                await self._read_all(key, history, start, end)

    async def _read_all(self, key: TopicPartition, history: PartitionHistory, start: int, end: int) -> None:
        records: list[Found] = []
        position = start
        while position < end:
            try:
                fetched = await self._client.fetch(*key, position)
            except KafkaError as error:
                if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                position = start = await self._start_behind(key, history, position)  # records expire while the auditor reads
                records = [record for record in records if record.offset >= start]
                continue
            found, following = records_of(fetched, position)
            if following == position:
                raise Violation(f"{history.name}: nothing is read at {position}, and the log ends at {end}")
            history.read(position, found, high_watermark=end, log_start=start)
            records += found
            position = following
        history.audited(start, end, records, self._world.now_ms())

    async def _read_what_is_left(self, key: TopicPartition, history: PartitionHistory, start: int, end: int) -> None:
        """Read a partition with damaged bits offset by offset: records that are served must be right, and refused offsets are
        counted."""
        client = AsyncClient(client_config(self._address, AUDITOR, patience_ms=ROTTEN_PATIENCE_MS))
        position, refused = start, []
        while position < end:
            try:
                found, following = records_of(await client.fetch(*key, position), position)
            except ClientError:
                refused.append(position)
                position += 1
                continue
            except KafkaError as error:
                if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                # Records expire while the auditor requests the damaged batch again and again.
                position = start = await self._start_behind(key, history, position)
                continue
            if following == position:
                raise Violation(f"{history.name}: nothing is read at {position}, and nothing is said of damage")
            history.read(position, found, high_watermark=end, log_start=start)
            position = following
        history.refused(refused)
        await client.close()

    async def _start_behind(self, key: TopicPartition, history: PartitionHistory, position: int) -> int:
        """The log start offset, which must be higher than the `position` that was refused."""
        start = (await self._client.list_offsets({key: EARLIEST}))[key].offset
        history.started_at(start, self._world.now_ms())
        if start <= position:
            raise Violation(f"{history.name}: offset {position} was refused, and the log begins at {start}")
        return start

    async def read_groups(self, groups: dict[TopicPartition, Register], *, flushed: bool) -> None:
        for key, group in groups.items():
            if self._may_lose_tail and not flushed:
                group.lost_power()
            if len(group.asked) > 1:
                found = await self._client.committed_offsets(group.name, [key])
                group.read(str(found[key].offset))

    async def read_members(self, book: GroupHistory, histories: dict[TopicPartition, PartitionHistory]) -> None:
        if book.given:
            found = await self._client.committed_offsets(book.name, book.given)
            for key, committed in found.items():
                book.check(key, committed.offset, histories[key])

    async def read_settings(self, settings: dict[tuple[str, str], Register]) -> None:
        for topic in {topic: None for topic, _ in settings}:
            found = await self._client.describe_topic_config(topic)
            for (of, name), register in settings.items():
                if of == topic:
                    register.read(str(found[name]))

    async def close(self) -> None:
        await self._client.close()
