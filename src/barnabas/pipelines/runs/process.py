"""The process that runs a pipeline: `python -m barnabas.pipelines.runs.process`, started by `barnabas pipeline run`.

A script runs like `python script.py`, with Spark's settings from the environment. A declared pipeline runs on a local Spark
Connect server that this process starts, like PySpark's own `spark-pipelines`; Spark's events about its flows go to a file, line
by line.

Rules
  1. The process ends when its parent ends for any reason: it reads from a pipe that the parent keeps open and never writes to.
  2. SIGTERM ends the run cleanly: queries and session are stopped, then the process exits. The main thread usually waits for
     the JVM, and an exception there would interrupt a call on the connection. So another thread stops Spark; this ends the
     wait. After half a minute the run is killed with its process group.
  3. All processes in the run's process group end with it, even if it is killed. A shell in a session of its own waits for the
     end of this process and terminates the group. After some seconds it kills the remaining processes. Spark's JVM ends with
     this process by itself, except while it starts: then it cannot report its port and would stay.
  4. Tables outlive a run: the catalog is a Derby database in the storage folder, unless the specification names another.
     Spark's default catalog is in memory, and a second run would find files of tables that are in no catalog.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from barnabas.pipelines.runs.folders import begin_update
from barnabas.pipelines.spark_session import CHECKPOINTS, SETTINGS, is_local, submitted, use_this_python

if TYPE_CHECKING:
    from pyspark.pipelines.cli import PipelineSpec
    from pyspark.sql import SparkSession

_ending = threading.Event()
STOPPED = 128 + signal.SIGTERM
GRACE_S = 30.0  # time for the queries and the session to stop
LEAVE_S = 15  # seconds for the JVM to remove its temporary folders
# $1 is the process group, $2 the time in seconds until SIGKILL.
GUARD = """
read -r line
kill -TERM "-$1" 2>/dev/null || exit 0
left=$2
while [ "$left" -gt 0 ] && kill -0 "-$1" 2>/dev/null; do sleep 1; left=$((left - 1)); done
kill -KILL "-$1" 2>/dev/null
"""
DEFAULTS = {**SETTINGS, "spark.sql.connect.serverStacktrace.enabled": "false", "spark.log.level": "WARN"}
ON_THIS_MACHINE = "local[*]"


def main() -> None:
    """Run the pipeline of the command line, until it ends or SIGTERM stops it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=Path, required=True)
    parser.add_argument("--parent-pipe", type=int, required=True)
    parser.add_argument("--conf", action="append", default=[])
    parser.add_argument("--full-refresh", action="append", default=[])
    parser.add_argument("--full-refresh-all", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--every", type=float)
    parser.add_argument("--grace", type=float, default=GRACE_S)
    parser.add_argument("--leave", type=int, default=LEAVE_S)
    parser.add_argument("target", type=Path)
    parser.add_argument("arguments", nargs="*")
    given = parser.parse_args()
    guard_group(given.leave)
    signal.signal(signal.SIGTERM, lambda _number, _frame: _end(given.grace))
    signal.signal(signal.SIGUSR1, _raise)
    threading.Thread(target=_watch, args=(given.parent_pipe,), daemon=True).start()
    use_this_python()
    conf = dict(pair.partition("=")[::2] for pair in given.conf)
    if given.target.suffix == ".py":
        run_script(given.target, given.arguments, conf)
    else:
        DeclaredRun(given, conf).run()
    if _ending.is_set():  # a run whose queries were stopped counts as stopped
        sys.exit(STOPPED)


def guard_group(leave_s: int) -> None:
    """See rule 3. Does nothing if this process does not lead a group: then it is in the group of its parent."""
    if os.getpgid(0) == os.getpid():
        reading, held = os.pipe()  # nothing is written to the pipe; the end of this process closes it
        os.register_at_fork(after_in_child=lambda: os.close(held))
        command = ["sh", "-c", GUARD, "barnabas-guard", str(os.getpid()), str(leave_s)]
        nowhere = subprocess.DEVNULL
        subprocess.Popen(command, stdin=reading, stdout=nowhere, stderr=nowhere, start_new_session=True)
        os.close(reading)


def _end(grace_s: float) -> None:
    if not _ending.is_set():
        _ending.set()
        threading.Thread(target=_kill_after, args=(grace_s,), daemon=True).start()
        threading.Thread(target=_leave, daemon=True).start()


def _raise(number: int, frame: FrameType | None) -> None:
    raise SystemExit(STOPPED)


def _leave() -> None:
    """Stop the run, in the thread that SIGTERM starts."""
    try:
        _stop_classic_session()
    finally:
        os.kill(os.getpid(), signal.SIGUSR1)  # wakes the main thread


def _kill_after(grace_s: float) -> None:
    """Kill this run's group after `grace_s` seconds: Spark waits without a limit for a query if its tasks do not end or its
    cluster is gone."""
    time.sleep(grace_s)
    if os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(STOPPED)


def _stop_classic_session() -> None:
    if "pyspark" not in sys.modules:
        return
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context, session = SparkContext._active_spark_context, SparkSession._instantiatedSession
    if context is None:  # there is no session, or a Spark Connect session, which the main thread stops
        return
    for query in session.streams.active if session is not None else ():
        query.stop()
    context.stop()


def _watch(pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def run_script(script: Path, arguments: list[str], conf: Mapping[str, str]) -> None:
    """Run the script as `__main__`; if it leaves a session open, stop that."""
    import shlex

    given = [word for word in shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")) if word != "pyspark-shell"]
    master = conf.get("spark.master") or submitted().get("spark.master") or ON_THIS_MACHINE
    checkpoints = CHECKPOINTS if is_local(master) else {}
    # If a setting is repeated, Spark takes the last value.
    words = [*_conf_words(DEFAULTS | checkpoints), *given, *_conf_words(conf)]
    os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join([*words, "pyspark-shell"])
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent.resolve()))
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        if not _ending.is_set():
            _stop_classic_session()


def _conf_words(conf: Mapping[str, str]) -> list[str]:
    return [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]


def is_on_this_machine(storage: str) -> bool:
    """Whether the storage of a project, with its checkpoints, is a folder of this machine."""
    return urllib.parse.urlsplit(storage).scheme in ("", "file")


def checkpoint_settings(storage: str) -> dict[str, str]:
    """The checkpoint's file manager for a folder of this machine; Spark's own one for other storage, since a rename may work
    differently there."""
    return dict(CHECKPOINTS) if is_on_this_machine(storage) else {}


def catalog_settings(storage: str, project: Path) -> dict[str, str]:
    """A catalog that the next run finds: beside the storage if that is a folder of this machine, otherwise in the project."""
    path = urllib.parse.unquote(urllib.parse.urlsplit(storage).path)
    folder = (Path(path) if is_on_this_machine(storage) else project / ".catalog").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder / 'metastore'};create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={folder / 'derby.log'}",
    }


class DeclaredRun:
    """One update of a declared pipeline, or with `--every` many, in one session."""

    def __init__(self, given: argparse.Namespace, conf: Mapping[str, str]) -> None:
        from pyspark.pipelines.cli import load_pipeline_spec

        self._given = given
        self._spec: PipelineSpec = load_pipeline_spec(given.target)
        named = {**self._spec.configuration, **conf}
        keeps = {} if _names_a_catalog(named) else catalog_settings(self._spec.storage, given.target.parent)
        self._conf = {**DEFAULTS, **checkpoint_settings(self._spec.storage), **keeps, **named}

    def run(self) -> None:
        spark = self._session()
        try:
            full_refresh, all_of_it = self._given.full_refresh, self._given.full_refresh_all
            while True:
                self._update(spark, full_refresh, all_of_it)
                if self._given.every is None:
                    return
                full_refresh, all_of_it = [], False
                time.sleep(self._given.every)
        finally:
            spark.stop()

    def _session(self) -> SparkSession:
        import warnings

        from pyspark.sql import SparkSession

        builder = SparkSession.builder.config("spark.api.mode", "connect").config("spark.master", ON_THIS_MACHINE)
        for name, value in self._conf.items():
            builder = builder.config(name, value)
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "Failed to set", UserWarning
            )  # the client repeats the settings that the server was started with
            return builder.getOrCreate()

    def _update(self, spark: SparkSession, full_refresh: list[str], all_of_it: bool) -> None:
        from pyspark.pipelines.cli import register_definitions
        from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
        from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, start_run

        begin_update(self._given.events)
        settable = {name: value for name, value in self._spec.configuration.items() if spark.conf.isModifiable(name)}
        graph = create_dataflow_graph(
            spark, default_catalog=self._spec.catalog, default_database=self._spec.database, sql_conf=settable
        )
        registry = SparkConnectGraphElementRegistry(spark, graph)
        register_definitions(self._given.target.resolve(), registry, self._spec, spark, graph)
        results = start_run(
            spark,
            graph,
            full_refresh=full_refresh,
            full_refresh_all=all_of_it,
            refresh=[],
            dry=self._given.dry_run,
            storage=self._spec.storage,
        )
        with self._given.events.open("a") as events:
            for result in results:
                if "pipeline_event_result" in result:
                    _tell(events, result["pipeline_event_result"].event)


def _names_a_catalog(conf: Mapping[str, str]) -> bool:
    return any(name == "spark.sql.catalogImplementation" or name.startswith("spark.sql.catalog.") for name in conf)


def _tell(events: Any, event: Any) -> None:
    at = event.timestamp.seconds + event.timestamp.nanos / 1e9
    events.write(json.dumps({"time_s": at, "message": event.message}) + "\n")
    events.flush()


if __name__ == "__main__":
    main()
