"""The progress display of the demo: one line for each task, with moving bars on a terminal, otherwise plain lines.

Rules
  1. Threads of the demo report to a `Board`; only the board writes to the terminal.
  2. A log file or a CI page gets a plain line with all tasks every few seconds, so that it shows progress too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

PLAIN_INTERVAL_S = 5.0
PLAIN_WIDTH = 120  # of tables if the output is not a terminal


class Task:
    """One line of the board: the finished part of a total, and a few words."""

    def __init__(self, board: Board, name: str, total: int | None) -> None:
        self._board = board
        self.name = name
        self.total = total
        self.completed = 0
        self.words = ""
        self.shown = ""  # the text of the last plain line
        self.bar: TaskID | None = None

    def update(self, completed: int, words: str = "", *, total: int | None = None) -> None:
        """Set the finished part; `completed` is the whole amount, not a step."""
        self.completed, self.words = completed, words
        self.total = total if total is not None else self.total
        self._board.show(self)

    def text(self) -> str:
        total = f"/{self.total:,}" if self.total is not None else ""
        return f"{self.name} {self.completed:,}{total}{' ' + self.words if self.words else ''}"


class Board:
    """The tasks, and methods to print lines beside them; a context manager."""

    def __init__(self, console: Console | None = None, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self.console = console or Console(highlight=False)
        if not self.console.is_terminal:
            self.console.width = PLAIN_WIDTH
        self._tasks: list[Task] = []
        self._lock = threading.Lock()
        self._now_s = now_s
        self._started_s = self._plain_at_s = now_s()
        self._progress = Progress(
            TextColumn("{task.description:<23}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[words]}"),
            TimeElapsedColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )

    def task(self, name: str, total: int | None = None) -> Task:
        task = Task(self, name, total)
        task.bar = self._progress.add_task(name, total=total, words="")
        with self._lock:
            self._tasks.append(task)
        return task

    def show(self, task: Task) -> None:
        """Update a task's line."""
        assert task.bar is not None
        self._progress.update(task.bar, completed=task.completed, total=task.total, words=task.words)
        if not self.console.is_terminal:
            self._show_plain()

    def say(self, text: str) -> None:
        """Print a line that stays; it may have rich markup."""
        self.console.print(text, soft_wrap=True)

    def step(self, text: str) -> None:
        """Print a line that names the current step of the run."""
        self.say(f"[dim]{self._now_s() - self._started_s:6.1f} s[/dim]  {text}")

    def _show_plain(self) -> None:
        with self._lock:
            now_s = self._now_s()
            if now_s - self._plain_at_s < PLAIN_INTERVAL_S:
                return
            self._plain_at_s = now_s
            news = [task for task in self._tasks if (task.completed or task.words) and task.text() != task.shown]
            for task in news:
                task.shown = task.text()
        if news:
            self.step("; ".join(task.shown for task in news))

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()
