"""The right to use an engine's folder: a lock, and the id of the cluster whose jobs are in it."""

from __future__ import annotations

import fcntl
import logging
from pathlib import Path
from typing import IO

from barnabas.engine.folders import jobs_folder, safe_name
from barnabas.errors import BarnabasError

logger = logging.getLogger(__name__)


class FolderInUse(BarnabasError):
    """Another engine uses the folder, or it cannot be used."""


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
                self._take(cluster_id)
            except BaseException:
                lock.close()
                raise
        except BlockingIOError:
            raise FolderInUse(f"another engine uses the folder {self._folder}") from None
        except OSError as error:
            raise FolderInUse(f"the folder {self._folder} cannot be used: {error.strerror or error}") from None
        self._lock = lock

    def _take(self, cluster_id: str | None) -> None:
        """Set the jobs of another cluster aside: an engine removes what belongs to no job of its own cluster.

        They stay in `jobs.ID`, and come back with their cluster. The id is written in between, so that a kill at any point leaves a folder
        that the next engine understands.
        """
        path = self._folder / "cluster"
        known = path.read_text().strip() if path.exists() else ""
        jobs = jobs_folder(self._folder)
        if known and cluster_id and known != cluster_id:
            logger.warning("event=jobs-set-aside folder=%s cluster=%s", self._folder, known)
            if jobs.exists():
                jobs.rename(_aside(jobs, known))
        if cluster_id or not known:
            path.write_text(f"{cluster_id or ''}\n")
        kept = _aside(jobs, cluster_id or known)
        if kept.exists() and not jobs.exists():
            kept.rename(jobs)

    def close(self) -> None:
        """Let the folder go."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _aside(jobs: Path, cluster_id: str) -> Path:
    return jobs.with_name(f"{jobs.name}.{safe_name(cluster_id)}")
