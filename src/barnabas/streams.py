"""The standard streams of a process of ours: there from the start, and let go of when nobody takes what is written.

A process may be started with one of the descriptors 0, 1 and 2 closed (`<&-`, `>&-`, a service manager). The next file or socket that it
opens would get that number, and whatever uses the standard stream would then use that file. So every entry point opens the null device
on those that are missing before it opens anything else.
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
    """Give each closed descriptor of 0 to 2 the null device, and Python's stream of it where Python has none.

    Children inherit them. To be called before anything else is opened.
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
            stream = open(descriptor, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115 - for as long as the process lives
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


class OutputFailed(OSError):
    """Standard output takes nothing more: its reader is gone (EPIPE), the disk is full, and so on."""


class _Output(io.BufferedWriter):
    """A buffer whose errors are told apart from those of other files.

    Not the raw file below it: a signal's exception between its write and the buffer's notice of it would have the bytes written twice.
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
    """Make standard output raise OutputFailed, and take every name: bytes of paths as they are, else what it cannot encode escaped."""
    encoding = sys.stdout.encoding
    errors = "surrogateescape" if encoding.lower() == "utf-8" else "backslashreplace"
    buffer = _Output(io.FileIO(sys.stdout.fileno(), "w", closefd=False))
    sys.stdout = io.TextIOWrapper(buffer, encoding, errors, line_buffering=sys.stdout.isatty())


def drop_unwritten() -> None:
    """Point standard output and error at nothing where they take nothing, so that the interpreter's last flush does not fail on them."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _drop(stream.fileno())


def drop_standard_output() -> None:
    """Point standard output at nothing."""
    _drop(sys.stdout.fileno())


def _drop(descriptor: int) -> None:
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), descriptor)
