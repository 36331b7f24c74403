"""Files of a local folder.

A file is written under another name first, which begins with a dot, and synced; then it gets its name, and the folder is synced. So
a file with its name is whole, also after a loss of power.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.files.storage import Changed, Entry, Storage


class Folder:
    """See `Storage`."""

    def __init__(self, path: str) -> None:
        self._root = os.path.normpath(path)

    def entries(self, *, recursive: bool) -> Iterable[Entry]:
        found: list[Entry] = []
        try:
            self._scan(self._root, "", recursive, found)
        except OSError as error:
            raise ConnectError(f"the folder {error.filename or self._root} cannot be read: {error.strerror}") from None
        return found

    def _scan(self, folder: str, prefix: str, recursive: bool, found: list[Entry]) -> None:
        below = []
        with os.scandir(folder) as entries:
            for each in entries:
                if each.name.startswith("."):
                    continue
                if each.is_dir():
                    below.append(each.name)
                elif (entry := _entry(each, prefix)) is not None:
                    found.append(entry)
        for name in below if recursive else ():
            try:
                self._scan(f"{folder}/{name}", f"{prefix}{name}/", recursive, found)
            except FileNotFoundError:  # it went away since its parent was read
                continue

    def open(self, entry: Entry) -> IO[bytes]:
        path = self.address(entry.name)
        try:
            return open(path, "rb")
        except FileNotFoundError:
            raise Changed(f"{path} is gone") from None
        except OSError as error:
            raise ConnectError(f"{path} cannot be read: {error.strerror}") from None

    def put(self, name: str, data: Any) -> None:
        path = Path(self.address(name))
        other = path.with_name(f".{path.name}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with other.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            other.replace(path)
            for folder in _folders(path, Path(self._root)):
                _sync(folder)
        except OSError as error:
            other.unlink(missing_ok=True)
            raise ConnectError(f"{path} cannot be written: {error.strerror}") from None

    def move(self, name: str, target: Storage) -> None:
        source = self.address(name)
        wanted = Path(target.address(name))
        place, number = wanted, 0
        try:
            wanted.parent.mkdir(parents=True, exist_ok=True)
            while place.exists():
                number += 1
                place = wanted.with_name(f"{wanted.name}.{number}")
            shutil.move(source, place)
        except FileNotFoundError:
            return  # somebody else has moved it
        except OSError as error:
            raise ConnectError(f"{source} cannot be moved to {place}: {error.strerror}") from None

    def delete(self, name: str) -> None:
        path = self.address(name)
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            raise ConnectError(f"{path} cannot be deleted: {error.strerror}") from None

    def address(self, name: str) -> str:
        return f"{self._root}/{name}"


def _entry(each: os.DirEntry[str], prefix: str) -> Entry | None:
    try:
        status = each.stat()
    except FileNotFoundError:  # it went away since the folder was read
        return None
    if not each.is_file():
        return None
    return Entry(prefix + each.name, status.st_size, status.st_mtime_ns // 1_000_000, str(status.st_ino), is_whole=False)


def _folders(path: Path, root: Path) -> Iterator[Path]:
    """The folders of a file up to the root, whose entries may not be on the disk."""
    for each in path.parents:
        yield each
        if each == root:
            return


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
