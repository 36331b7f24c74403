"""The errors of tables."""

from __future__ import annotations

from barnabas.errors import BarnabasError


class TableError(BarnabasError):
    """A table cannot be read as asked; the message is one line that names the reason."""


class UnknownColumn(TableError):
    """A column that the table does not have."""

    def __init__(self, topic: str, column: str, known: list[str]) -> None:
        super().__init__(f"the table {topic} has no column {column}; it has {', '.join(known)}")


class BadRecord(TableError):
    """A record that does not fit the table's format, in the mode `fail`."""

    def __init__(self, topic: str, partition: int, offset: int, reason: str) -> None:
        super().__init__(f"{topic}-{partition}: the record at offset {offset} does not fit the table: {reason}")
        self.topic, self.partition, self.offset, self.reason = topic, partition, offset, reason
