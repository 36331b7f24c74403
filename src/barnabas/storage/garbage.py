"""Files that are no longer part of a log and wait to be removed.

Rules
  1. The files were renamed before, so that after a crash the next start recognises and removes them.
  2. A deleted folder is removed with all its content, also folders of other programs. Of a symbolic link, only the link is removed, not
     its target.
  3. If an entry cannot be removed (because of its rights, or a mount), the disk still counts as working: a log line names the entry, and
     the next start tries again.
  4. `remove` blocks and runs in a thread; until then the descriptors stay open, so that running reads can finish.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from barnabas.errors import StorageError
from barnabas.storage.files import Files
from barnabas.storage.os_errors import storage_error

logger = logging.getLogger(__name__)
OF_THE_ENTRY = frozenset({errno.EACCES, errno.EPERM, errno.EBUSY, errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR})


class Garbage:
    """Files, or a whole folder, that are removed once."""

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
        """Close the descriptors and remove the files; a second call does nothing.

        Raises:
            StorageError: the disk fails; the next start tries again.
        """
        for garbage in self._inner:
            garbage.remove()
        self.close()
        try:
            for path in self._paths:
                self._files.unlink(path)
            if self.directory is not None and self._files.exists(self.directory):
                remove_deleted(self._files, self.directory)
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
        StorageError: the first error; the other files are removed.
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
    """Remove a folder with all its content.

    Raises:
        OSError: the error of the first entry that could not be removed. The others are removed, unless the disk itself fails.
    """
    failures = _remove_tree(files, directory)
    if failures:
        raise failures[0]


def remove_deleted(files: Files, directory: Path) -> None:
    """Remove a folder whose name makes the next start remove it; entries that cannot be removed are left to that start.

    Raises:
        OSError: the disk does not work.
    """
    failures = _remove_tree(files, directory)
    if failures:
        note = "the next start tries again"
        logger.warning("event=deleted-log-not-removed path=%s note=%r error=%r", directory, note, str(failures[0]))


def _remove_tree(files: Files, directory: Path) -> list[OSError]:
    """Remove everything that can be removed; returns the errors, but raises errors of the disk."""
    failures: list[OSError] = []

    def names_in(folder: Path) -> list[str]:
        try:
            return files.list_directory(folder)
        except OSError as error:
            _keep(error, failures)
            return []

    folders = [directory]
    for folder in folders:  # the list grows during the loop
        for name in names_in(folder):
            path = folder / name
            if files.is_directory(path):
                folders.append(path)
            else:
                _remove(files.unlink, path, failures)
    for folder in reversed(folders):
        _remove(files.remove_directory, folder, failures)
    return failures


def _remove(remove: Callable[[Path], None], path: Path, failures: list[OSError]) -> None:
    try:
        remove(path)
    except OSError as error:
        _keep(error, failures)


def _keep(error: OSError, failures: list[OSError]) -> None:
    if error.errno not in OF_THE_ENTRY:
        raise error
    failures.append(error)
