"""The memory that all TLS connections of a loop share.

Owns the two BIOs of OpenSSL and the buffers beside them. One turn of the loop works on one connection, and leaves both BIOs empty: OpenSSL
takes the start of an unfinished record out of the incoming BIO, and the output is read at once. So one pair of BIOs serves all
connections, and an idle connection holds only OpenSSL's own memory.
"""

from __future__ import annotations

import ssl

from barnabas import limits


class TlsBuffers:
    """The buffers: `received` for reads of sockets, `received_small` as its part for small frames, `plain` for data to encrypt."""

    def __init__(self) -> None:
        self.received = memoryview(bytearray(limits.RECEIVE_BUFFER_BYTES))
        self.received_small = self.received[: limits.RECEIVED_SMALL_BYTES]
        self.plain = memoryview(bytearray(limits.TLS_GATHERED_BYTES))
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()

    def forget(self) -> None:
        """Leave both BIOs empty."""
        if self.incoming.pending:
            self.incoming.read()
        if self.outgoing.pending:
            self.outgoing.read()
