"""Files that are no longer part of a log and wait to be removed.

Rules
  1. Whoever makes it has renamed the files, so that a crash before the removal leaves names that the next start removes.
  2. `remove` blocks and runs in a thread; until then the descriptors stay open, so that reads under way finish.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from barnabas.errors import StorageError
from barnabas.storage.faults import storage_error
from barnabas.storage.files import Files


class Garbage:
    """Files, or a whole folder, to be removed once."""

    def __init__(
        self,
        files: Files,
        paths: Sequence[Path],
        closers: Sequence[Callable[[], None]],
        inner: Sequence[Garbage] = (),
        directory: Path | None = None,
    ) -> None:
        self._files = files
        self._paths = list(paths)
        self._closers = list(closers)
        self._inner = list(inner)
        self.directory = directory

    def remove(self) -> None:
        """Close the descriptors and remove the files; once only, calling again does nothing.

        Raises:
            StorageError: the disk does not let go of them; the next start tries again.
        """
        for garbage in self._inner:
            garbage.remove()
        self.close()
        try:
            for path in self._paths:
                self._files.unlink(path)
            if self.directory is not None and self._files.exists(self.directory):
                remove_folder(self._files, self.directory)
        except OSError as error:
            folder = self.directory or self._paths[0].parent
            raise storage_error(folder.parent, error) from error
        self._inner, self._paths, self.directory = [], [], None

    def close(self) -> None:
        """Close the descriptors; the files stay."""
        for garbage in self._inner:
            garbage.close()
        for close in self._closers:
            close()
        self._closers = []


def remove_all(garbage: Iterable[Garbage]) -> None:
    """Remove several; blocks, like each of them.

    Raises:
        StorageError: the first that could not be removed; the others are.
    """
    failures: list[StorageError] = []
    for each in garbage:
        try:
            each.remove()
        except StorageError as error:
            failures.append(error)
    if failures:
        raise failures[0]


def remove_folder(files: Files, directory: Path) -> None:
    """Remove a partition's folder with the files in it."""
    for name in files.list_directory(directory):
        files.unlink(directory / name)
    files.remove_directory(directory)
