"""Files that are no longer part of a log and wait to be removed.

Rules
  1. The files were renamed before, so that after a crash the next start recognises and removes them.
  2. In a folder that is to go, all goes, folders of others too; a symbolic link goes, and not what it leads to.
  3. An entry that cannot be removed (its rights, a mount) says nothing of the disk: it is named in the log and left to the next start.
  4. `remove` blocks and runs in a thread; until then the descriptors stay open, so that reads under way finish.
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
    """Remove a folder with all that is in it.

    Raises:
        OSError: of the first entry that could not be removed; unless it is the disk's, the others are.
    """
    failures = _remove_tree(files, directory)
    if failures:
        raise failures[0]


def remove_deleted(files: Files, directory: Path) -> None:
    """Remove a folder which by its name the next start removes; what cannot be removed is left to that.

    Raises:
        OSError: the disk does not work.
    """
    failures = _remove_tree(files, directory)
    if failures:
        note = "the next start tries again"
        logger.warning("event=deleted-log-not-removed path=%s note=%r error=%r", directory, note, str(failures[0]))


def _remove_tree(files: Files, directory: Path) -> list[OSError]:
    """Remove what can be removed; what was met, but for errors of the disk, which are raised."""
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
