"""The sending half of a TLS connection: an `Outbox` that encrypts its data.

It gathers buffers and pieces of files into one block of plain text. One call encrypts the block as full records, another writes it. It
reads files directly into the block, so their bytes are not held anywhere else.

Rules
  1. It encrypts nothing before the kernel has taken the earlier encrypted bytes. So a connection that does not read holds at most one
     block (`limits.TLS_GATHERED_BYTES`), and its file regions stay regions.
  2. OpenSSL's own records (the handshake, alerts, new keys) follow the records that are encrypted already (`push_sealed`), because records
     are numbered.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable

from barnabas.server.outbox import FILE_BYTES_PER_TURN, Outbox, Region, TurnIsOver
from barnabas.server.pinned_regions import PinnedFiles
from barnabas.server.tls.buffers import TlsBuffers
from barnabas.server.write_waiters import WriteWaiters
from barnabas.storage.file_region import FileRegion


class TlsOutbox(Outbox):
    """An `Outbox` with TLS; `waiting_bytes` counts plain text, and encrypted bytes that the kernel has not taken.

    Args:
        tls: the TLS object of the connection; its outgoing BIO is that of `buffers`.
    """

    __slots__ = ("_buffers", "_sealed", "_tls")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        descriptor: int,
        pinned_files: PinnedFiles,
        write_waiters: WriteWaiters,
        on_room: Callable[[], None],
        on_error: Callable[[OSError], None],
        *,
        tls: ssl.SSLObject,
        buffers: TlsBuffers,
    ) -> None:
        super().__init__(loop, descriptor, pinned_files, write_waiters, on_room, on_error)
        self._tls = tls
        self._buffers = buffers
        self._sealed = memoryview(b"")  # encrypted, not yet taken by the kernel

    def push_sealed(self, data: bytes) -> None:
        """Queue data that is encrypted already; the next `flush` sends it."""
        self._sealed = memoryview(b"".join((self._sealed, data)) if self._sealed else data)
        self.waiting_bytes += len(data)

    def flush(self) -> None:
        if self._blocked or not (self._items or self._sealed):
            return
        self._file_bytes_left = FILE_BYTES_PER_TURN
        try:
            try:
                self._send_sealed()
            except TurnIsOver:
                self._wait_for_turn()
            except BlockingIOError:
                self._wait_for_room()
        except OSError as error:
            self._sealed = self._sealed[:0]
            self.give_up(error)

    def _send_sealed(self) -> None:
        while self._sealed or self._items:
            if not self._sealed:
                if self._file_bytes_left <= 0:
                    raise TurnIsOver
                self._seal()
            sent = os.write(self._descriptor, self._sealed)
            self._taken(sent)
            self._sealed = self._sealed[sent:]

    def close(self) -> None:
        self._sealed = self._sealed[:0]
        super().close()

    def _seal(self) -> None:
        """Encrypt the waiting data, at most one buffer full."""
        plain = self._buffers.plain
        filled = 0
        while self._items and filled < len(plain):
            item = self._items[0]
            room = len(plain) - filled
            if isinstance(item, Region):
                size = min(item.size, room, self._file_bytes_left)
                if size <= 0:
                    break
                filled += self._read(item, plain[filled : filled + size])
            elif len(item) <= room:
                plain[filled : filled + len(item)] = item
                filled += len(item)
                self._items.popleft()
            else:
                view = memoryview(item)
                plain[filled:] = view[:room]
                self._items[0] = view[room:]
                filled = len(plain)
        self._tls.write(plain[:filled])
        sealed = self._buffers.outgoing.read()
        self.waiting_bytes += len(sealed) - filled
        self._sealed = memoryview(sealed)

    def _read(self, region: Region, target: memoryview) -> int:
        size = os.preadv(region.fileno, [target], region.position)
        if size == 0:
            raise OSError(f"a file region of {region.size} bytes ends before its end")
        self._file_bytes_left -= size
        if size == region.size:
            self._items.popleft()
            return size
        if isinstance(region, FileRegion):
            region = self._items[0] = self._pinned_files.hold(region)
        region.position += size
        region.size -= size
        return size
