"""Requests of ZooKeeper 3.5 and 3.6 that kazoo does not have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from kazoo.exceptions import EXCEPTIONS
from kazoo.protocol.serialization import (
    GetData,
    MultiHeader,
    Transaction,
    int_struct,
    read_buffer,
    read_string,
    stat_struct,
    write_string,
)
from kazoo.protocol.states import ZnodeStat
from msgspec import Struct

PERSISTENT_RECURSIVE = 1  # the kind of watch
ERROR = -1  # the type of an error result


class AddWatch(Struct, frozen=True):
    """Watch all changes at `path` and below, until the session or its connection ends."""

    path: str
    type: ClassVar[int] = 106

    def serialize(self) -> bytes:
        return bytes(write_string(self.path) + int_struct.pack(PERSISTENT_RECURSIVE))

    @staticmethod
    def deserialize(_buffer: bytes, _offset: int) -> bool:
        return True


class CreateContainer(Struct, frozen=True):
    """Create a node that the server removes some time after its last child is removed."""

    path: str
    acl: Iterable[Any]
    type: ClassVar[int] = 19

    def serialize(self) -> bytes:
        acl = list(self.acl)
        rights = b"".join(int_struct.pack(a.perms) + write_string(a.id.scheme) + write_string(a.id.id) for a in acl)
        container = 4
        no_value = int_struct.pack(-1)
        return bytes(write_string(self.path) + no_value + int_struct.pack(len(acl)) + rights + int_struct.pack(container))

    @staticmethod
    def deserialize(_buffer: bytes, _offset: int) -> bool:
        return True


class MultiRead(Struct, frozen=True):
    """Many reads in one request (ZooKeeper 3.6), for about the cost of one read."""

    operations: Sequence[Any]
    type: ClassVar[int] = 22

    def serialize(self) -> bytes:
        return bytes(Transaction(self.operations).serialize())

    def deserialize(self, buffer: bytes, offset: int) -> list[Any]:
        """A value or a KazooException for each read."""
        outcomes: list[Any] = []
        for operation in self.operations:
            header, offset = MultiHeader.deserialize(buffer, offset)
            if header.type == ERROR:
                outcomes.append(EXCEPTIONS[int_struct.unpack_from(buffer, offset)[0]]())
                offset += int_struct.size
            else:
                outcome, size = (_read_data if operation.type == GetData.type else _read_children)(buffer, offset)
                outcomes.append(outcome)
                offset += size
        return outcomes


def _read_data(buffer: bytes, offset: int) -> tuple[Any, int]:
    value, end = read_buffer(buffer, offset)
    status = ZnodeStat._make(stat_struct.unpack_from(buffer, end))
    return (value, status), end + stat_struct.size - offset


def _read_children(buffer: bytes, offset: int) -> tuple[Any, int]:
    (count,) = int_struct.unpack_from(buffer, offset)
    end = offset + int_struct.size
    names = []
    for _ in range(count):
        name, end = read_string(buffer, end)
        names.append(name)
    return names, end - offset
