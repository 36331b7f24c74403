"""A log file with a limit of its size: a full file becomes `NAME.1`, in the place of the one before."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import BinaryIO

from barnabas import limits

LAST_BYTES = 64 << 10  # of a log, in which an error is looked for


class RotatingLog:
    """Appends to a file. For several threads at once. A disk that is full loses lines, and nothing else."""

    def __init__(self, path: Path, most_bytes: int = limits.MAX_JOB_LOG_BYTES) -> None:
        self.path, self._most_bytes = path, most_bytes
        self._file: BinaryIO | None = None
        self._size = 0
        self._lock = threading.Lock()

    def write(self, data: bytes) -> None:
        """Append whole lines."""
        with self._lock:
            try:
                self._write(data)
            except OSError:
                self._close()

    def _write(self, data: bytes) -> None:
        if self._file is not None and self._size + len(data) > self._most_bytes:
            self._close()
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("ab", buffering=0)
            self._size = os.fstat(self._file.fileno()).st_size
        self._file.write(data)
        self._size += len(data)

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def last_lines(path: Path, count: int, most_bytes: int = limits.MAX_JOB_LOG_BYTES) -> list[str]:
    """The last lines of a log, those of the file before it included; none if there is no file."""
    lines: list[str] = []
    for each in (path, path.with_name(f"{path.name}.1")):
        if len(lines) < count:
            lines = _lines(each, most_bytes) + lines
    return lines[-count:] if count > 0 else []


def _lines(path: Path, most_bytes: int) -> list[str]:
    try:
        with path.open("rb") as file:
            start = max(file.seek(0, os.SEEK_END) - most_bytes, 0)
            file.seek(start)
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
    return lines[1:] if start else lines
