"""Opens a task: its plug-in, its config, its converters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import structs

from barnabas.connect.api import Sink, Source
from barnabas.connect.catalog import Kind, find
from barnabas.connect.config_types import ConfigError
from barnabas.connect.errors import ConnectError
from barnabas.connect.functions import connector_class
from barnabas.connect.references import Resolver
from barnabas.connect.runtime.settings import TaskSettings
from barnabas.connect.runtime.sink_task import SinkTask
from barnabas.connect.runtime.source_task import SourceTask
from barnabas.engine.jobs import ConnectorWork, Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def opened(
    job: Job, settings: Mapping[str, str], log: logging.Logger, spark: Callable[[], SparkSession] | None = None
) -> SourceTask | SinkTask:
    """The task of a job, which is not started yet.

    Args:
        settings: of the client, with `bootstrap.servers`.
        spark: waits for the session of this process; called for a plug-in that needs it. None: there is none here.

    Raises:
        UnknownPlugin: this machine lacks the plug-in.
        ConfigError, ConnectError: the config does not fit.
    """
    assert isinstance(job.work, ConnectorWork)
    plugin = connector_class(find(job.work.plugin, [Kind(job.work.kind)]).load())()
    assert isinstance(plugin, (Source, Sink))
    return task_of(job, settings, plugin, log, spark)


def task_of(
    job: Job, settings: Mapping[str, str], plugin: Source | Sink, log: logging.Logger,
    spark: Callable[[], SparkSession] | None = None,
) -> SourceTask | SinkTask:  # fmt: skip
    """The task of a job with its plug-in. Raises ConfigError, ConnectError, Unresolved."""
    assert isinstance(job.work, ConnectorWork)
    if plugin.needs_spark:
        plugin.spark = _own_session(job.work.plugin, spark)
    given = Resolver(job.work.worker).resolved(job.work.config)  # secrets stay in this process
    found = TaskSettings(structs.replace(job.work, config=given), settings)
    config = config_of(plugin, given)
    if isinstance(plugin, Source):
        return SourceTask(job, found, log, plugin, config)
    return SinkTask(job, found, log, plugin, config)


def _own_session(plugin: str, spark: Callable[[], SparkSession] | None) -> SparkSession:
    """A session with settings and temporary views of its own. Raises ConnectError."""
    if spark is None:
        raise ConnectError(f"{plugin} needs Spark, and this process has no session")
    made = spark().newSession()
    made.conf.set("spark.sql.session.timeZone", "UTC")
    return made


def config_of(plugin: Source | Sink, given: Mapping[str, str]) -> dict[str, Any]:
    """The config of a plug-in, parsed, with the keys that all connectors have. Raises ConfigError."""
    config = {**given, **plugin.config.parse(given)}
    for key, errors in plugin.validate(given).items():
        if errors:
            raise ConfigError(errors[0] if key in errors[0] else f"{key}: {errors[0]}")
    return config
