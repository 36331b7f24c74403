"""The table in the target that has the offsets up to which a sink has written records.

It changes in the transaction that writes the records. The row of a partition is locked meanwhile, so of two tasks that write one
partition the later one sees the offset of the other, and leaves out the records that are there.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from barnabas.connect.plugins.databases.database import Database
from barnabas.connect.plugins.databases.table_name import TableName

KINDS: dict[str, pa.DataType] = {
    "connector": pa.string(), "kafka_topic": pa.string(), "kafka_partition": pa.int32(), "next_offset": pa.int64(),
}  # fmt: skip
COLUMNS = pa.schema(KINDS)
KEYS = ("connector", "kafka_topic", "kafka_partition")
Place = tuple[str, int]


class OffsetsTable:
    """The offsets of one connector.

    Args:
        table: its name.
    """

    def __init__(self, database: Database, table: TableName, connector: str) -> None:
        self._database, self._table, self._connector = database, table, connector

    def create(self) -> None:
        """Create the table unless it is there."""
        if self._database.columns(self._table) is None:
            self._database.create(self._table, COLUMNS, KEYS)
            self._database.commit()

    def read(self, *, lock: bool = False) -> dict[Place, int]:
        """The offset behind the last record that was written, by topic and partition.

        Args:
            lock: for the rest of the transaction, against others that would change them.
        """
        name = self._database.name
        statement = (
            f"SELECT {name('kafka_topic')}, {name('kafka_partition')}, {name('next_offset')} "
            f"FROM {self._database.table(self._table)} WHERE {name('connector')} = {self._database.mark}"
        )
        if lock:
            statement += self._database.for_update
        return {(topic, int(partition)): int(end) for topic, partition, end in self._database.run(statement, (self._connector,))}

    def ensure(self, begins: Mapping[Place, int]) -> None:
        """Make the rows of partitions that have none, so that there is something to lock."""
        known = self.read()
        rows = {place: begin for place, begin in begins.items() if place not in known}
        if rows:
            self._database.insert_absent(self._table, self._rows(rows), KEYS)

    def write(self, ends: Mapping[Place, int]) -> None:
        """Take note of offsets."""
        self._database.upsert(self._table, self._rows(ends), KEYS)

    def _rows(self, offsets: Mapping[Place, int]) -> pa.Table:
        rows = [(self._connector, topic, partition, offset) for (topic, partition), offset in offsets.items()]
        columns = [pa.array(values, each.type) for values, each in zip(zip(*rows, strict=True), COLUMNS, strict=True)]
        return pa.table(columns, schema=COLUMNS)

    def alter(self, places: Mapping[Place, int | None]) -> None:
        """Set offsets, or delete them where there is None."""
        kept = {place: end for place, end in places.items() if end is not None}
        if kept:
            self.write(kept)
        if len(kept) < len(places):
            gone = self._rows({place: 0 for place in places if place not in kept})
            self._database.delete(self._table, gone.select(list(KEYS)))
