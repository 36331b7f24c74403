"""The right to use an engine's folder: a lock, and the id of the cluster whose jobs are in it."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO

from barnabas.errors import BarnabasError


class FolderInUse(BarnabasError):
    """The folder belongs to another engine or another cluster."""


class HeldFolder:
    """A folder and its lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: IO[str] | None = None

    def hold(self, cluster_id: str | None) -> None:
        """Make the folder, and lock it, if that was not done before.

        Raises:
            FolderInUse: see there.
        """
        if self._lock is not None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = (self._folder / "lock").open("a")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._check(cluster_id)
            except BaseException:
                lock.close()
                raise
        except BlockingIOError:
            raise FolderInUse(f"another engine uses the folder {self._folder}") from None
        except OSError as error:
            raise FolderInUse(f"the folder {self._folder} cannot be used: {error.strerror or error}") from None
        self._lock = lock

    def _check(self, cluster_id: str | None) -> None:
        """An engine removes what belongs to no job of its cluster, so the jobs of another cluster must not be here."""
        path = self._folder / "cluster"
        known = path.read_text().strip() if path.exists() else ""
        if not known:
            path.write_text(f"{cluster_id or ''}\n")
        elif cluster_id and known != cluster_id:
            raise FolderInUse(f"the folder {self._folder} has the jobs of another cluster, {known}")

    def close(self) -> None:
        """Let the folder go."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
