"""`barnabas connect run FILE`: the connectors of a Python file, in this process, until they are stopped or one fails."""

from __future__ import annotations

import importlib.util
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from barnabas.connect.api import Connector, Sink, Source
from barnabas.connect.errors import ConnectError
from barnabas.connect.functions import connector_class
from barnabas.connect.runtime.opening import task_of
from barnabas.connect.runtime.task import Task
from barnabas.engine.jobs import ConnectorWork, Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_S = 0.1
NO_SPARK = "the connector {} needs PySpark: pip install 'barnabas[spark]'"
OPTION = "spark.option."  # of a connector's format; other keys with `spark.` are settings of the session
PLAIN_JSON = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "group.id": "connect-standalone",
}


def connectors_of(path: Path) -> list[type[Connector]]:
    """The connectors that a file defines, in its order. Raises ConnectError; what the file itself raises passes."""
    name = f"_connectors_of_{path.stem}"  # the stem alone may be the name of a module that others import
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConnectError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    found = []
    for each in vars(module).values():
        if getattr(each, "__module__", None) != name:
            continue
        try:
            made = connector_class(each)
        except ConnectError:
            continue
        found.append(made)
    if not found:
        raise ConnectError(f"{path} has no connector: decorate a function with @source or @sink, or write a Source or a Sink")
    return found


def job_of(cls: type[Connector], config: Mapping[str, str]) -> Job:
    """The job of a connector in one task, with the worker's settings that `PLAIN_JSON` has."""
    given = {"name": cls.__name__, **getattr(cls, "defaults", {}), **config}
    kind: Literal["source", "sink"] = "source" if issubclass(cls, Source) else "sink"
    if kind == "sink" and not (given.get("topics") or given.get("topics.regex")):
        raise ConnectError(f"the sink {given['name']} has no topics")
    return Job(given["name"], ConnectorWork(given["name"], 0, 1, kind, cls.__name__, given, PLAIN_JSON))


def run(
    classes: Sequence[type[Connector]], config: Mapping[str, str], settings: Mapping[str, str], stopping: threading.Event,
    started: Callable[[Sequence[str]], None],
) -> None:  # fmt: skip
    """Run connectors until the event, or until one fails.

    Args:
        config: keys that all of them have.
        settings: of the client, with `bootstrap.servers`.
        started: told the names, once all of them work.

    Raises:
        ConnectError: one has failed. Others as `opening.opened`.
    """
    wanting = next((each for each in classes if each.needs_spark), None)
    if wanting is None:
        _run(classes, config, settings, stopping, started)
        return
    if importlib.util.find_spec("pyspark") is None:
        raise ConnectError(NO_SPARK.format(wanting.__name__))
    with _session(config) as spark:
        _run(classes, config, settings, stopping, started, spark)


@contextmanager
def _session(config: Mapping[str, str]) -> Iterator[SparkSession]:
    """The session of this process; one that is made here is stopped at the end."""
    from barnabas.pipelines import session
    from barnabas.pipelines.spark_session import has_session

    was_there, interrupted = has_session(), signal.getsignal(signal.SIGINT)
    spark = session(
        "barnabas-connect",
        conf={key: value for key, value in config.items() if key.startswith("spark.") and not key.startswith(OPTION)},
    )
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupted)  # PySpark has set a handler that ends the program with an error
    try:
        yield spark
    finally:
        if not was_there:
            spark.stop()


def _run(
    classes: Sequence[type[Connector]], config: Mapping[str, str], settings: Mapping[str, str], stopping: threading.Event,
    started: Callable[[Sequence[str]], None], spark: SparkSession | None = None,
) -> None:  # fmt: skip
    tasks: list[Task] = []
    try:
        for cls in classes:
            plugin = cls()
            assert isinstance(plugin, (Source, Sink))
            job = job_of(cls, config)
            task: Task = task_of(
                job, settings, plugin, logging.getLogger(f"barnabas.connector.{job.name}"), None if spark is None else lambda: spark
            )  # fmt: skip
            tasks.append(task)
            task.start()
        started([each.job.name for each in tasks])
        while not stopping.wait(LOOK_S):
            for each in tasks:
                if reason := each.failure():
                    raise ConnectError(f"the connector {each.job.name} has failed: {reason}")
    finally:
        for each in tasks:
            each.stop()
