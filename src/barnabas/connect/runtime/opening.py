"""Opens a task: its plug-in, its config, its converters."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from barnabas.connect.api import Sink, Source
from barnabas.connect.plugin import Kind, find
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
    work = job.work
    assert isinstance(work, ConnectorWork)
    cls = find(work.plugin, [Kind(work.kind)]).load()
    config = cls.config.parse(work.config)
    found = TaskSettings(work, settings)
    plugin = cls()
    if isinstance(plugin, Source):
        return SourceTask(job, found, log, plugin, config)
    assert isinstance(plugin, Sink)
    return SinkTask(job, found, log, plugin, config)
