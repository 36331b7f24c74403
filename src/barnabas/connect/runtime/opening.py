"""Opens a task: its plug-in, its config, its converters."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from msgspec import structs

from barnabas.connect.api import Sink, Source
from barnabas.connect.catalog import Kind, find
from barnabas.connect.config_types import ConfigError
from barnabas.connect.functions import connector_class
from barnabas.connect.references import Resolver
from barnabas.connect.runtime.settings import TaskSettings
from barnabas.connect.runtime.sink_task import SinkTask
from barnabas.connect.runtime.source_task import SourceTask
from barnabas.engine.jobs import ConnectorWork, Job


def opened(job: Job, settings: Mapping[str, str], log: logging.Logger) -> SourceTask | SinkTask:
    """The task of a job, which is not started yet.

    Args:
        settings: of the client, with `bootstrap.servers`.

    Raises:
        UnknownPlugin: this machine lacks the plug-in.
        ConfigError, ConnectError: the config does not fit.
    """
    assert isinstance(job.work, ConnectorWork)
    plugin = connector_class(find(job.work.plugin, [Kind(job.work.kind)]).load())()
    assert isinstance(plugin, (Source, Sink))
    return task_of(job, settings, plugin, log)


def task_of(job: Job, settings: Mapping[str, str], plugin: Source | Sink, log: logging.Logger) -> SourceTask | SinkTask:
    """The task of a job with its plug-in. Raises ConfigError, ConnectError, Unresolved."""
    assert isinstance(job.work, ConnectorWork)
    given = Resolver(job.work.worker).resolved(job.work.config)  # secrets stay in this process
    found = TaskSettings(structs.replace(job.work, config=given), settings)
    config = config_of(plugin, given)
    if isinstance(plugin, Source):
        return SourceTask(job, found, log, plugin, config)
    return SinkTask(job, found, log, plugin, config)


def config_of(plugin: Source | Sink, given: Mapping[str, str]) -> dict[str, Any]:
    """The config of a plug-in, parsed, with the keys that all connectors have. Raises ConfigError."""
    config = {**given, **plugin.config.parse(given)}
    for key, errors in plugin.validate(given).items():
        if errors:
            raise ConfigError(errors[0] if key in errors[0] else f"{key}: {errors[0]}")
    return config
