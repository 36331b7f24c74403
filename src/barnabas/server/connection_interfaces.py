"""The interfaces of the parts that a connection works with: the dispatcher, the log-in and the mute of a client over its quota.

`connection.py` imports no feature; the features implement these protocols.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from barnabas.server.pinned_regions import PinnedFiles
from barnabas.server.write_waiters import WriteWaiters

C_contra = TypeVar("C_contra", contravariant=True)


class Dispatcher(Protocol[C_contra]):
    """The broker, as connections of type `C_contra` use it."""

    @property
    def pinned_files(self) -> PinnedFiles: ...

    @property
    def write_waiters(self) -> WriteWaiters: ...

    def dispatch(self, connection: C_contra, data: memoryview, position: int, stop: int) -> int:
        """Handle the request at `position` of `data`, or several from there on.

        Args:
            data: received bytes; they are valid until this call returns.
            position: of the request, which begins with four bytes of its size.
            stop: where the request ends.

        Returns:
            Where the next request begins: `stop`, or behind it.

        Raises:
            ProtocolError: the connection has to be closed.
        """
        ...

    def connection_opened(self, connection: C_contra) -> str | None:
        """Count the connection; a reason to refuse it, or None."""
        ...

    def connection_closed(self, connection: C_contra) -> None: ...


class LogIn(Protocol):
    """Finds out the principal of a connection (`authentication/`)."""

    def admits(self, frame: memoryview) -> bool:
        """Whether the dispatcher handles the frame; if not, the frame was a step of the log-in, and is answered."""
        ...

    def begin_again(self, frame: memoryview) -> bool:
        """Whether a handshake of a connection that is logged in begins another log-in, and is answered."""
        ...


class Mute(Protocol):
    """Pauses reading a connection because its client is over a quota (`quotas/`)."""

    @property
    def left_ms(self) -> int: ...
    def extend(self, wait_ms: float) -> None: ...
    def end(self) -> None: ...
