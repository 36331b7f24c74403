"""A server in a process of its own: starts it with a fresh folder, waits for it, measures it with its children, and ends it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from barnabas.testing.children import Child
from bench.peers.peer import PeerUnavailable
from bench.servers import cpu_seconds

READY_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
POLL_S = 0.005
_PEAK = "5"  # written to clear_refs, resets the peak memory of a process: proc(5)


def program(name: str, package: str) -> str:
    """The path of a program; raises PeerUnavailable with the name of its Debian package."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise PeerUnavailable(f"{name} is not installed (Debian package: {package})")
    return found


class Process:
    """Runs `command` in a temporary folder; the folder's path is known before the start."""

    def __init__(self, name: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"bench-{name}-"))
        self._name = name
        self._processes: list[Child[bytes]] = []

    def start(
        self, command: Sequence[str], is_ready: Callable[[], bool] | None = None, environment: Mapping[str, str] | None = None
    ) -> float:
        """Start the command; returns the seconds until `is_ready` returns True (an OSError counts as False).

        Raises:
            PeerUnavailable: the process ended or did not become ready. After this and any other error everything is stopped.
        """
        log_path = self.folder / "output"
        began = time.perf_counter()
        with log_path.open("ab") as log:
            process: Child[bytes] = Child(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(environment or {})},
                cwd=self.folder,
            )
        self._processes.append(process)
        try:
            while is_ready is not None and not _says_yes(is_ready):
                if process.poll() is not None or time.perf_counter() - began > READY_TIMEOUT_S:
                    words = " ".join(log_path.read_text(errors="replace").split())[-300:]
                    raise PeerUnavailable(f"{self._name} did not start: {words}")
                time.sleep(POLL_S)
        except BaseException:  # also after an interrupt: no other code would stop the process
            self.stop()
            raise
        return time.perf_counter() - began

    @property
    def pids(self) -> list[int]:
        return [pid for process in self._processes for pid in family(process.pid)]

    def stop(self) -> None:
        """End all processes, the last one first, and remove the folder; may be called again."""
        while self._processes:
            process = self._processes.pop()
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.end()
        shutil.rmtree(self.folder, ignore_errors=True)


def _says_yes(is_ready: Callable[[], bool]) -> bool:
    try:
        return is_ready()
    except OSError:
        return False


def family(pid: int) -> list[int]:
    """The ids of a process and all its descendants."""
    try:
        children = [
            int(child)
            for task in os.listdir(f"/proc/{pid}/task")
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()
        ]
    except (FileNotFoundError, ProcessLookupError):
        return [pid]  # the process is ending
    return [pid, *(each for child in children for each in family(child))]


def cpu_of(pids: Sequence[int]) -> float:
    """User and system time in seconds so far; a helper process that has ended does not count."""
    return sum(_cpu_or_nothing(pid) for pid in pids)


def cpu_by_pid(pids: Sequence[int]) -> dict[int, float]:
    """User and system time of each process in seconds so far, for `cpu_since`."""
    return {pid: _cpu_or_nothing(pid) for pid in pids}


def cpu_since(before: Mapping[int, float], pids: Sequence[int]) -> float:
    """User and system time in seconds since `before`: of processes that began later too. Those that have ended do not count."""
    return sum(used - before.get(pid, 0.0) for pid, used in cpu_by_pid(pids).items() if used)


def _cpu_or_nothing(pid: int) -> float:
    try:
        return cpu_seconds(pid)
    except OSError:  # the process does not exist
        return 0.0


def forget_peak(pids: Sequence[int]) -> None:
    """Reset the kernel's peak of the memory use, if the system allows it."""
    for pid in pids:
        try:
            Path(f"/proc/{pid}/clear_refs").write_text(_PEAK)
        except PermissionError:
            return
        except (FileNotFoundError, ProcessLookupError):
            continue  # the process has ended


def peak_mb(pids: Sequence[int]) -> float:
    """The peak of resident memory since `forget_peak`, in units of 1,000,000 bytes; pages of mapped files count."""
    return sum(_status_kib(pid, "VmHWM:") for pid in pids) * 1024 / 1e6


def resident_mb(pids: Sequence[int]) -> float:
    return sum(_status_kib(pid, "VmRSS:") for pid in pids) * 1024 / 1e6


def proportional_mb(pids: Sequence[int]) -> float:
    """The memory of processes; a page that several processes share counts once in their sum."""
    return sum(_status_kib(pid, "Pss:", "smaps_rollup") for pid in pids) * 1024 / 1e6


def _status_kib(pid: int, field: str, file: str = "status") -> int:
    try:
        status = Path(f"/proc/{pid}/{file}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0  # the process has ended
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith(field)), 0)


def disk_bytes(folder: Path) -> int:
    """The bytes in the files of a folder, without holes and without space that the file system reserves after their ends."""
    found = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return sum(min(each.st_size, each.st_blocks * 512) for each in found)


class OwnProcess:
    """The part of a `Peer` that depends only on its process."""

    is_made_by_writing = False

    def __init__(self) -> None:
        self.ready_after_s = 0.0
        self._running: Process | None = None

    @property
    def process(self) -> Process:
        assert self._running is not None, "it runs"
        return self._running

    @property
    def pids(self) -> Sequence[int]:
        return self.process.pids

    def __exit__(self, *_: object) -> None:
        if self._running is not None:
            self._running.stop()
            self._running = None
