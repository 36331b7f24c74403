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
        """Handle the request at `position` of `data`, or several requests from there on.

        Args:
            data: received bytes; they are valid until this call returns.
            position: the start of the request; its first four bytes are its size.
            stop: the end of the request.

        Returns:
            The start of the next request: `stop`, or a later position.

        Raises:
            ProtocolError: the connection must close.
        """
        ...

    def connection_opened(self, connection: C_contra) -> str | None:
        """Count the connection. Returns a reason to refuse it, or None."""
        ...

    def connection_closed(self, connection: C_contra) -> None: ...


class LogIn(Protocol):
    """Finds out the principal of a connection (`authentication/`)."""

    def admits(self, frame: memoryview) -> bool:
        """Whether the dispatcher must handle the frame; if not, the frame was a step of the log-in and has its answer."""
        ...

    def begin_again(self, frame: memoryview) -> bool:
        """Whether the handshake begins another log-in of a connection that is logged in; then it has its answer."""
        ...


class Mute(Protocol):
    """Pauses reading a connection because its client is over a quota (`quotas/`)."""

    @property
    def left_ms(self) -> int: ...
    def extend(self, wait_ms: float) -> None: ...
    def end(self) -> None: ...
