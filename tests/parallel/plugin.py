"""Hands the units of `plan.py` to the workers of pytest-xdist, and shows progress and each failure at once.

It works in the process that distributes the tests. In a terminal one line is written anew; elsewhere a line follows each
`PAUSE_S` seconds, for logs.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Generator
from typing import Any

import pytest
from _pytest.terminal import TerminalReporter
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.parallel.plan import Plan, Progress, file_of, files_of_spark, read_seconds, write_seconds

PAUSE_S = 15.0
PAUSE_IN_TERMINAL_S = 1.0
Status = tuple[str, str, Any]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick-first", action="store_true", help="start with the quickest files rather than with the longest")
    parser.addoption("--record-seconds", action="store_true", help="write the seconds of each file to tests/parallel/seconds.tsv")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Distribution(config))


class UnitScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """A unit goes to a worker as a whole, in the order of the plan."""

    plan: Plan

    def schedule(self) -> None:
        if self.collection is None:
            self.plan = make_plan(next(iter(self.registered_collections.values())), self.config)
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return self.plan.unit(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(self.plan.next_of(self.workqueue), last=False)
        super()._assign_work_unit(node)


def make_plan(tests: list[str], config: pytest.Config) -> Plan:
    return Plan(tests, read_seconds(), files_of_spark(), quick_first=config.getoption("--quick-first"))


class Distribution:
    """The hooks of one run."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._progress: Progress | None = None
        self._shown = 0.0
        self._seconds: defaultdict[str, float] = defaultdict(float)
        config.option.loadscopereorder = False  # the plan sets the order

    @property
    def _terminal(self) -> TerminalReporter:
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        assert isinstance(reporter, TerminalReporter)
        return reporter

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> UnitScheduling:
        return UnitScheduling(config, log)

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if self._progress is None:
            self._shown = time.monotonic()
            self._progress = Progress(make_plan(ids, self._config), self._shown)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Status, Status]:
        """No letter for each test: the line of progress says more."""
        category, _letter, word = yield
        return category, "", word

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[file_of(report.nodeid)] += report.duration
        if self._progress is None:
            return
        if report.failed:
            self._progress.failed += 1
            self._write(f"FAILED {report.nodeid} ({report.when}): {reason(report)}", red=True)
        if report.when == "teardown":
            self._progress.ended(report.nodeid)
            self._show(self._progress)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Files of other parts keep their seconds; a run that was interrupted tells nothing."""
        if self._config.getoption("--record-seconds") and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            write_seconds(read_seconds() | self._seconds)

    def _show(self, progress: Progress) -> None:
        now = time.monotonic()
        pause = PAUSE_IN_TERMINAL_S if self._terminal.isatty else PAUSE_S
        if now - self._shown < pause:
            return
        self._shown = now
        if self._terminal.isatty:
            self._terminal.rewrite(progress.line(now), erase=True, bold=True)
        else:
            self._write(progress.line(now))
        self._terminal.flush()

    def _write(self, line: str, **markup: bool) -> None:
        if self._terminal.isatty:
            self._terminal.rewrite("", erase=True)
            self._terminal.rewrite("")
        self._terminal.write_line(line, **markup)


def reason(report: pytest.TestReport) -> str:
    """The first line of what went wrong."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr).partition("\n")[0]
