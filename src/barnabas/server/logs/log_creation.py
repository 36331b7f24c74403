"""Creates the logs of partitions for this broker, many at once: threads make folders and files, and sync their names together.

A log is used only after its name is on the disk. If a disk fails, its error takes the place of the log, and no file remains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.errors import StorageError
from barnabas.server.logs.batched_jobs import in_turns, run_in_parts
from barnabas.storage.log import Log
from barnabas.storage.manager import FoundLog

if TYPE_CHECKING:
    from barnabas.cluster.planning.instructions import CreateLog
    from barnabas.server.services import Services

THREADS_NAME = "barnabas-making"


async def make_logs(services: Services, instructions: Sequence[CreateLog]) -> list[Log | StorageError]:
    """The logs, or the errors of the disks. The names are synced after all logs are made, because one sync then serves many logs."""
    prepared = [_prepare(services, wanted) async for wanted in in_turns(instructions)]
    found = [each for each in prepared if isinstance(each, FoundLog)]
    made = await run_in_parts(services, [each.open for each in found], THREADS_NAME)
    opened = [each for each in made if isinstance(each, Log)]
    synced = await run_in_parts(services, [each.sync_name for each in opened], THREADS_NAME)
    failures = {each: error for each, error in zip(opened, synced, strict=True) if error is not None}
    taken = [_take(services, each, log, failures) for each, log in zip(found, made, strict=True)]
    unmade = [log for log, outcome in zip(made, taken, strict=True) if isinstance(log, Log) and outcome is not log]
    await run_in_parts(services, [partial(services.logs.creation.unmake, each) for each in unmade], THREADS_NAME)
    outcomes = iter(taken)
    return [next(outcomes) if isinstance(each, FoundLog) else each for each in prepared]


def _prepare(services: Services, wanted: CreateLog) -> FoundLog | Log | StorageError:
    try:
        return services.logs.creation.prepare(wanted.topic, wanted.partition, wanted.topic_id, wanted.config)
    except StorageError as error:
        return error


def _take(
    services: Services, prepared: FoundLog, made: Log | StorageError, failures: Mapping[Log, StorageError]
) -> Log | StorageError:
    """The created log, or the error of its creation, its sync or its directory."""
    failure = made if isinstance(made, StorageError) else failures.get(made) or prepared.directory.failure
    if failure is not None:
        services.logs.creation.not_made(prepared)
        return failure
    assert isinstance(made, Log)
    services.logs.creation.made(prepared, made)
    return made
