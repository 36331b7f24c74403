"""The standard streams of a barnabas process: makes sure that they exist, and detaches them when they cannot be written.

A process may be started with one of the descriptors 0, 1 and 2 closed (`<&-`, `>&-`, a service manager). The next file or
socket that it opens would get this number, and a write to the standard stream would go to this file. So every entry point first
opens the null device on the missing descriptors.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STREAMS = ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"))


def open_missing_streams() -> None:
    """Open the null device on each closed descriptor of 0 to 2, and create Python's stream for it if Python has none.

    Child processes inherit them. Call it before the process opens any file.
    """
    for descriptor, name, mode in STREAMS:
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened == descriptor:
                os.set_inheritable(descriptor, True)
            else:
                os.dup2(opened, descriptor)
                os.close(opened)
        if getattr(sys, name) is None:
            stream = open(descriptor, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115 - stays open until the process ends
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


class OutputFailed(OSError):
    """Standard output cannot be written: its reader closed the pipe (EPIPE), the disk is full, and so on."""


class _Output(io.BufferedWriter):
    """A buffer that raises errors of a special type, to distinguish them from errors of other files.

    It wraps the buffer and not the raw file. Otherwise the bytes could be written twice: after an exception of a signal handler
    between the raw write and the update of the buffer's state.
    """

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputFailed(error.errno, error.strerror) from None

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            raise OutputFailed(error.errno, error.strerror) from None


def prepare_output() -> None:
    """Make standard output raise OutputFailed and accept every text: bytes of paths stay unchanged, and it escapes other
    characters that it cannot encode."""
    encoding = sys.stdout.encoding
    errors = "surrogateescape" if encoding.lower() == "utf-8" else "backslashreplace"
    buffer = _Output(io.FileIO(sys.stdout.fileno(), "w", closefd=False))
    sys.stdout = io.TextIOWrapper(buffer, encoding, errors, line_buffering=sys.stdout.isatty())


def drop_unwritten() -> None:
    """Point standard output and error at the null device if they cannot be written, so that the interpreter's last flush does
    not fail."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _drop(stream.fileno())


def drop_standard_output() -> None:
    """Point standard output at the null device."""
    _drop(sys.stdout.fileno())


def _drop(descriptor: int) -> None:
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), descriptor)
