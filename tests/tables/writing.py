"""Writes to topics of a real broker, one batch at a time: plain, of an idempotent producer and in transactions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from barnabas.client import operations
from barnabas.client.blocking import BlockingClient
from barnabas.client.results import EARLIEST, LATEST, NewTopic
from barnabas.client.transactions import Owner, end_transactions, init_producer_id
from barnabas.error_codes import ErrorCode
from barnabas.protocol.records.record import Record, build_batch
from tests.waiting import wait_until

Pair = tuple[bytes | None, bytes | None]
OPEN_MS = 600_000  # a transaction stays open, however slow the machine is


class Producer:
    """A producer with an id: idempotent, or transactional if it has a name."""

    def __init__(self, client: BlockingClient, name: str | None = None) -> None:
        self._client, self._name = client, name
        self._owner: Owner = client.run(init_producer_id(client.config, client.cluster, name, timeout_ms=OPEN_MS)).owner
        self._next: dict[tuple[str, int], int] = {}

    def append(self, topic: str, partition: int, records: Sequence[Record | Pair], *, timestamp_ms: int = 0) -> int:
        """Append a batch; its base offset."""
        sequence = self._next.get((topic, partition), 0)
        batch = build_batch(
            records,
            timestamp_ms=timestamp_ms,
            producer_id=self._owner.producer_id,
            producer_epoch=self._owner.epoch,
            base_sequence=sequence,
            transactional=self._name is not None,
        )
        self._next[topic, partition] = sequence + len(records)
        client = self._client
        plan = operations.produce(client.config, client.cluster, topic, partition, batch, transactional_id=self._name)
        return client.run(plan).base_offset

    def end(self, *, commit: bool) -> None:
        """End the transaction; returns when its markers are in the log."""
        assert self._name is not None
        client = self._client
        places = list(self._next)
        if not places:
            return
        before = client.list_offsets(dict.fromkeys(places, LATEST), read_committed=False)
        plan = end_transactions(client.config, client.cluster, {self._name: self._owner}, commit=commit, second_version=True)
        ended = client.run(plan)[self._name]
        assert not isinstance(ended, ErrorCode), ended
        self._owner, self._next = ended, {}

        def has_markers() -> bool:
            now = client.list_offsets(dict.fromkeys(places, LATEST), read_committed=False)
            return all(now[place].offset > before[place].offset for place in places)

        wait_until(has_markers, "no markers")


class BrokerWriter:
    """Topics of a broker."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.client = BlockingClient.to(bootstrap_servers)
        self._names = count()

    def close(self) -> None:
        self.client.close()

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        """Create a topic; `_` in the names of settings stands for `.`."""
        configs = {name.replace("_", "."): value for name, value in settings.items()}
        self.client.create_topics([NewTopic(topic, partitions, 1, configs)])

    def append(
        self,
        topic: str,
        partition: int,
        records: Sequence[Record | Pair],
        *,
        timestamp_ms: int = 0,
        compression: int = 0,
    ) -> int:
        """Append a batch without a producer id; its base offset."""
        batch = build_batch(records, timestamp_ms=timestamp_ms, compression=compression)
        return self.client.produce(topic, partition, batch).base_offset

    def idempotent(self) -> Producer:
        """A producer without transactions."""
        return Producer(self.client)

    def transaction(self, name: str | None = None) -> Producer:
        """A producer with transactions; the open one of the same name is aborted."""
        return Producer(self.client, name or f"writer-{next(self._names)}")

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        self.client.delete_records({(topic, partition): before})

    def delete_topic(self, topic: str) -> None:
        self.client.delete_topics([topic])

    def earliest(self, topic: str, partition: int) -> int:
        return self.client.list_offsets({(topic, partition): EARLIEST})[topic, partition].offset

    def last_stable(self, topic: str, partition: int) -> int:
        return self.client.list_offsets({(topic, partition): LATEST}, read_committed=True)[topic, partition].offset

    def first_from(self, topic: str, partition: int, timestamp_ms: int) -> int:
        """ListOffsets of a time; -1 if there is none."""
        found = self.client.list_offsets({(topic, partition): timestamp_ms}, read_committed=True)
        return found[topic, partition].offset
