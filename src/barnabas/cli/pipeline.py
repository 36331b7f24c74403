"""`barnabas pipeline`: create, run, list and stop pipelines on Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import parse_addresses
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.lazy import HELP_OPTIONS
from barnabas.cli.output import Output, output_option
from barnabas.cli.types import WAIT, FilePath, Text, checked
from barnabas.signals import ending_signals
from barnabas.streams import drop_standard_output

if TYPE_CHECKING:
    from barnabas.pipelines.runs.folders import Events, Run, RunFolder
    from barnabas.pipelines.runs.progress import SourceProgress

LIST_COLUMNS = {"name": "NAME", "state": "STATE", "rows": "ROWS", "rows_per_second": "ROWS/S", "lag": "LAG", "started": "STARTED",
                "error": "LAST ERROR"}  # fmt: skip
POLL_S = 0.25
SHOW_PROGRESS_S = 5.0
STOP_TIMEOUT_S = 60.0


@click.group(context_settings=HELP_OPTIONS)
def pipeline() -> None:
    """Create, run, list and stop pipelines on Spark."""


@pipeline.command("init")
@click.argument("folder", metavar="NAME", type=FilePath(path_type=Path))
@click.option(
    "-b",
    "--bootstrap-server",
    type=Text(checked(parse_addresses)),
    default="127.0.0.1:9092",
    show_default=True,
    help="Bootstrap servers of the cluster that the example reads.",
)
@output_option
def init(output: Output, folder: Path, bootstrap_server: str) -> None:
    """Create a project: tables and topics declared in Python or SQL."""
    from barnabas.pipelines.runs import folders, project

    try:
        folders.RunFolder(folder.name)
        made = project.create_project(folder, bootstrap_server)
    except folders.PipelineError as error:
        raise BadInput(str(error)) from None
    lines = [f"made {path}" for path in made]
    lines.append(f"the example reads the topic orders; run it with: barnabas pipeline run {folder}")
    output.done("\n".join(lines), {"project": str(folder), "made": [str(path) for path in made]})


@pipeline.command("run")
@click.argument("target", type=FilePath(path_type=Path), default=Path())
@click.argument("arguments", nargs=-1)
@click.option("--name", help="Its name in `list`; by default the name of the specification or the script.")
@click.option("--master", metavar="URL", help="Spark's master: local[N], spark://host:port, yarn, k8s://...; default local[*].")
@click.option("--conf", "conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; repeatable.")
@click.option("--every", type=WAIT, metavar="SECONDS", help="Update it again at this interval.")
@click.option("--full-refresh", multiple=True, metavar="TABLE", help="Empty this table and compute it again; repeatable.")
@click.option("--full-refresh-all", is_flag=True, help="Empty all tables and compute them again.")
@click.option("--dry-run", is_flag=True, help="Check the declarations and run nothing.")
def run(
    target: Path, arguments: tuple[str, ...], name: str | None, master: str | None, conf: tuple[str, ...], every: float | None,
    full_refresh: tuple[str, ...], full_refresh_all: bool, dry_run: bool,
) -> int:  # fmt: skip
    """Run a project, a specification (.yml) or a PySpark script (.py) with its ARGUMENTS.

    A run of a project updates it: its tables and topics get the data that arrived since the last run, exactly once. Ctrl-C and
    the end of the terminal (SIGHUP) end a run in order.
    """
    from barnabas.pipelines.runs import folders, project

    try:
        found = project.find_target(target)
        folder = folders.RunFolder(name or found.name)
    except folders.PipelineError as error:
        raise BadInput(str(error)) from None
    declared_only = every is not None or full_refresh or full_refresh_all or dry_run
    if found.is_script and declared_only:
        raise BadInput("--every, --full-refresh, --full-refresh-all and --dry-run are for declared pipelines, not for scripts")
    if full_refresh and full_refresh_all:
        raise BadInput("--full-refresh and --full-refresh-all exclude each other")
    if wrong := [pair for pair in conf if "=" not in pair]:
        raise BadInput(f"--conf {wrong[0]!r} is not like key=value")
    if arguments and not found.is_script:
        raise BadInput("only a script takes arguments")
    options = [f"--conf={pair}" for pair in (*([f"spark.master={master}"] if master else []), *conf)]
    options += [f"--full-refresh={table}" for table in full_refresh]
    options += ["--full-refresh-all"] * full_refresh_all + ["--dry-run"] * dry_run
    options += [f"--every={every}"] if every is not None else []
    with folder.running(str(found.path.resolve())) as started:
        return _Watch(folder, started).run([*options, "--", str(found.path), *arguments])


class _Watch:
    """One run in the foreground: starts its process, prints its progress, and stops it on a signal."""

    def __init__(self, folder: RunFolder, run: Run) -> None:
        self._folder, self._run = folder, run
        self._shown_s = time.monotonic()
        self._progress: list[SourceProgress] = []
        self._ending = False
        self._is_heard = True  # whether standard output still has a reader

    def run(self, options: list[str]) -> int:
        from barnabas.pipelines.runs.folders import Events, last_error
        from barnabas.pipelines.runs.progress import FOLDER_VARIABLE

        reading, writing = os.pipe()
        command = [sys.executable, "-m", "barnabas.pipelines.runs.process", f"--events={self._folder.events}"]
        command += [f"--parent-pipe={reading}", *options]
        environment = {**os.environ, FOLDER_VARIABLE: str(self._folder.path)}
        handlers = {number: signal.signal(number, self._end) for number in ending_signals()}
        try:
            with self._folder.log.open("wb") as log:
                process = subprocess.Popen(
                    command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[reading],
                    start_new_session=True,
                )  # fmt: skip
            os.close(reading)
            with Events(self._folder.events) as events:
                code = self._wait(process, events)
        finally:
            os.close(writing)
            for number, handler in handlers.items():
                signal.signal(number, handler)
        # code 0 means completed, even if a signal was sent: the run ended before the signal reached it
        if code == 0 or self._ending:
            state = "completed" if code == 0 else "stopped"
            self._folder.finish(self._run, state)
            self._say(f"pipeline {self._run.name} {state}")
            return 0
        reason = last_error(self._folder) or f"its process ended with code {code}"
        self._folder.finish(self._run, "failed", reason)
        raise Failure(f"pipeline {self._run.name} failed: {reason} (see {self._folder.log})")

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._ending = True

    def _wait(self, process: subprocess.Popen[bytes], events: Events) -> int:
        deadline: float | None = None
        while True:
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(POLL_S)
                _wait_for_group(process.pid)
                self._tell(events, at_end=True)
                return code
            self._tell(events)
            self._ending = self._ending or not self._is_heard
            if self._ending and deadline is None:
                deadline = time.monotonic() + STOP_TIMEOUT_S / 2
                process.terminate()
            if deadline is not None and time.monotonic() > deadline:
                _signal_group(process.pid, signal.SIGKILL)

    def _tell(self, events: Events, *, at_end: bool = False) -> None:
        for event in events.read():
            self._say(" ".join(str(event["message"]).split()))
        now = time.monotonic()
        if not at_end and now - self._shown_s < SHOW_PROGRESS_S:
            return
        self._shown_s = now
        progress = self._folder.progress()
        if progress != self._progress:
            self._progress = progress
            for item in progress:
                self._say(
                    f"{', '.join(item.topics)}: {item.rows:,} rows read, {item.rows_per_second:,.1f} rows/s, {item.lag:,} behind"
                )

    def _say(self, line: str) -> None:
        try:
            click.echo(line)
        except OSError:  # the reader closed the pipe; like Ctrl-C, this ends a run cleanly
            drop_standard_output()
            self._is_heard = False


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; returns whether the group exists."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


def _wait_for_group(group: int) -> None:
    """Wait for the processes that a finished run started. They end soon (`runs/process.py`), but may have open files and write
    until then."""
    deadline = time.monotonic() + STOP_TIMEOUT_S / 2
    while _signal_group(group, 0):
        if time.monotonic() > deadline:
            _signal_group(group, signal.SIGKILL)
            return
        with suppress(ChildProcessError):  # this process may be the first one of a container, so that orphans become its children
            os.waitpid(-group, os.WNOHANG)
        time.sleep(POLL_S)


@pipeline.command("list")
@output_option
def list_pipelines(output: Output) -> None:
    """List the pipelines that ran on this machine: state, rows, lag and the last error."""
    from barnabas.pipelines.runs.folders import known_runs

    output.table([_row(folder, run) for folder, run in known_runs()], LIST_COLUMNS, empty="no pipelines")


def _row(folder: RunFolder, run: Run) -> dict[str, Any]:
    from barnabas.pipelines.runs.folders import flow_error

    progress = folder.progress()
    running = run.state == "running"
    return {
        "name": run.name,
        "state": run.state,
        "rows": sum(item.rows for item in progress),
        "rows_per_second": round(sum(item.rows_per_second for item in progress), 1) if running else None,
        "lag": sum(item.lag for item in progress) if progress else None,
        "started": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started_s)),
        "error": flow_error(folder.events) if running else run.error,
        "what": run.what,
        "log": str(folder.log),
        "sources": [{"topics": i.topics, "group": i.group, "rows": i.rows, "lag": i.lag} for i in progress],
    }


@pipeline.command("stop")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--timeout", "timeout_s", type=WAIT, default=STOP_TIMEOUT_S, show_default=True, help="Seconds to wait for its end.")
@output_option
def stop(output: Output, names: tuple[str, ...], timeout_s: float) -> None:
    """Stop running pipelines, and wait until they have ended."""
    from barnabas.pipelines.runs.folders import PipelineError, RunFolder

    for name in names:
        try:
            RunFolder(name).stop(timeout_s)
        except PipelineError as error:
            raise Failure(str(error)) from None
        if not output.as_json:
            click.echo(f"stopped {name}")
    if output.as_json:
        output.json({"stopped": list(names)})
