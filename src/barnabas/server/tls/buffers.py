"""The memory that all TLS connections of a loop share.

Owns the two BIOs of OpenSSL and the buffers beside them. One turn of the loop works on one connection, and leaves both BIOs empty: OpenSSL
takes the start of an unfinished record to itself before it asks for more, and what it has to send is taken out at once. So one pair serves
all connections, and one that is idle holds nothing but what OpenSSL keeps for it.
"""

from __future__ import annotations

import ssl

from barnabas import limits


class TlsBuffers:
    """`received` is where sockets are read into, `received_small` as much of it as is for small frames, `plain` where what is to be
    encrypted is gathered."""

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
