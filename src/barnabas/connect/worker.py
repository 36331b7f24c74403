"""One worker: answers the requests of the REST interface, from the topics and by changes of them. Its calls block.

Every worker answers every request. What must be read back is read back before it answers. No call waits for the leader.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec import structs

import barnabas
from barnabas import limits
from barnabas.client import transactions
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError
from barnabas.connect.herder import errors, requests
from barnabas.connect.herder import offsets as of_offsets
from barnabas.connect.herder.planning import is_ours, job_name
from barnabas.connect.herder.records import LOGGER, Changes, Target
from barnabas.connect.herder.state import Config, Configs
from barnabas.connect.herder.unused import unused_keys
from barnabas.connect.herder.validation import alter_in_target, check, check_offsets, kinds_of, secrets_of, validate
from barnabas.connect.leading.leader import Leader, Worker
from barnabas.connect.references import Resolver, is_reference
from barnabas.connect.store import groups
from barnabas.connect.store.connect_topics import CONFIGS, OFFSETS, ConnectTopics, offsets_topic
from barnabas.connect.store.partitioned import PartitionedTopic
from barnabas.engine.jobs import Job
from barnabas.errors import BarnabasError, KafkaError
from barnabas.web.routing import HttpError

logger = logging.getLogger(__name__)
HIDDEN, TASKS_MAX = "[hidden]", "tasks.max"
ALTERED = {"message": "The offsets for this connector have been altered successfully"}
RESET = {"message": "The offsets for this connector have been reset successfully"}
R = TypeVar("R")


class Requests:
    """See the module.

    Args:
        leader: of this worker, which is woken after changes.
    """

    def __init__(self, config: ClientConfig, topics: ConnectTopics, worker: Worker, resolver: Resolver, leader: Leader) -> None:
        self._config = config
        self._topics, self._worker, self._resolver, self._leader = topics, worker, resolver, leader
        self._client, self._lock = BlockingClient(config), threading.Lock()

    def close(self) -> None:
        """Release the connections."""
        with self._lock:
            self._client.close()

    def root(self) -> dict[str, Any]:
        """What this is."""
        return {"version": barnabas.__version__, "commit": "unknown", "kafka_cluster_id": self._topics.cluster_id()}

    # -- connectors

    def names(self) -> list[str]:
        """The names of all connectors."""
        return list(self._topics.configs().connectors)

    def expanded(self, what: set[str]) -> dict[str, Any]:
        """Connectors with their info and status."""
        configs, statuses = self._topics.configs(), self._topics.statuses()
        found: dict[str, dict[str, Any]] = {}
        for name in configs.connectors:
            found[name] = each = {}
            if "info" in what:
                each["info"] = self._info(configs, name)
            if "status" in what and statuses.connector(name) is not None:
                each["status"] = requests.shown_status(configs, statuses, name, _kind(configs, name))
        return found

    def info(self, name: str) -> dict[str, Any]:
        """One connector. Raises HttpError 404."""
        return self._info(self._there(name), name)

    def config(self, name: str) -> dict[str, Any]:
        """The config of a connector. Raises HttpError 404."""
        return masked(self._there(name).connectors[name])

    def create(self, name: str, config: Config, target: Target | None) -> dict[str, Any]:
        """Make a connector. Raises HttpError 400, 409."""
        full = requests.named(name, config)
        self._check(name, full)
        return self._info(self._change(lambda now: requests.create(now, name, full, target)), name)

    def put(self, name: str, config: Config) -> tuple[bool, dict[str, Any]]:
        """Make or change a connector; returns whether it was made. Raises HttpError 400."""
        full = requests.named(name, config)
        full = unmasked(full, self._topics.configs().connectors.get(name, {}))
        self._check(name, full)
        was_there: list[bool] = []

        def decide(now: Configs) -> Changes:
            was_there[:] = [name in now.connectors]
            return requests.put(full, name)

        info = self._info(self._change(decide), name)
        return not was_there[0], info

    def patch(self, name: str, patch: Config) -> dict[str, Any]:
        """Change keys of a config. Raises HttpError 400, 404."""
        now = self._topics.configs()
        full = requests.named(name, requests.patched(now, name, unmasked(patch, now.connectors.get(name, {}))))
        self._check(name, full)

        def decide(then: Configs) -> Changes:
            if name not in then.connectors:
                raise errors.not_found(name)
            return requests.put(full, name)

        return self._info(self._change(decide), name)

    def unused(self, name: str) -> dict[str, str]:
        """The keys of a config that was written which do nothing, with the reasons. What was written stays so: no error comes of this."""
        config = self._topics.configs().connectors.get(name)
        try:
            found = {} if config is None else unused_keys(config, self._worker.settings, self._resolver)
        except (BarnabasError, HttpError, ImportError) as error:
            logger.warning("event=connector-keys-not-checked connector=%r reason=%r", name, str(error))
            return {}
        for key, reason in found.items():
            logger.warning("event=connector-key-unused connector=%r key=%r reason=%r", name, key, reason)
        return found

    def delete(self, name: str) -> None:
        """Remove a connector. Raises HttpError 404."""
        self._change(lambda now: requests.delete(now, name))

    def _check(self, name: str, config: Config) -> None:
        check(config, self._worker.settings, self._resolver)
        if len(job_name(name, 9_999)) > limits.MAX_JOB_NAME or not name.isprintable():
            raise errors.bad(f"the name of a connector has at most {limits.MAX_JOB_NAME - 13} printable characters")

    # -- states

    def status(self, name: str) -> dict[str, Any]:
        """The status of a connector. Raises HttpError 404."""
        configs = self._topics.configs()
        return requests.shown_status(configs, self._topics.statuses(), name, _kind(configs, name))

    def set_target(self, name: str, target: Target) -> None:
        """Start, pause or stop a connector. Raises HttpError 404."""
        self._change(lambda now: requests.set_target(now, name, target))

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> dict[str, Any] | None:
        """Restart a connector, and tasks; returns what the caller is told. Raises HttpError 404."""
        configs = self._topics.configs()
        found = requests.restart(
            configs,
            self._topics.statuses(),
            name,
            include_tasks=include_tasks,
            only_failed=only_failed,
            kind=_kind(configs, name),
        )
        if changes := found.changes(name):
            self._change(lambda now: changes if name in now.connectors else {})
        self._restart_jobs({job_name(name, task) for task in found.tasks})
        return found.answer

    def restart_task(self, name: str, task: int) -> None:
        """Restart one task. Raises HttpError 404."""
        requests.check_task(self._topics.configs(), name, task)
        self._restart_jobs({job_name(name, task)})

    def _restart_jobs(self, names: set[str]) -> None:
        topic = self._topics.names[CONFIGS]

        def again(there: Mapping[str, Job]) -> dict[str, Job | None]:
            own = {name: there[name] for name in names if is_ours(there.get(name), topic)}
            return {name: structs.replace(job, restarts=job.restarts + 1) for name, job in own.items()}

        if names:
            with self._lock:
                self._leader.jobs.change(self._client, again)
            self._leader.wake()

    # -- tasks and topics

    def tasks(self, name: str) -> list[dict[str, Any]]:
        """The tasks of a connector with their configs. Raises HttpError 404."""
        found = self._there(name).tasks(name)
        return [{"id": {"connector": name, "task": at}, "config": masked(config)} for at, config in enumerate(found)]

    def task_status(self, name: str, task: int) -> dict[str, Any]:
        """The status of a task. Raises HttpError 404."""
        return requests.shown_task_status(self._topics.statuses(), name, task)

    def topics(self, name: str) -> dict[str, Any]:
        """The topics that a connector uses."""
        return {name: {"topics": sorted(self._topics.statuses().topics(name))}}

    def reset_topics(self, name: str) -> None:
        """Forget the topics that a connector uses."""
        changes = requests.forget_topics(self._topics.statuses(), name)
        with self._lock:
            self._topics.put_statuses(self._client, changes)

    # -- offsets

    def offsets(self, name: str) -> dict[str, Any]:
        """The offsets of a connector. Raises HttpError 404."""
        config = self._there(name).connectors[name]
        if _kind_of(config) == "sink":
            with self._lock:
                return {"offsets": of_offsets.shown_of_sink(groups.offsets_of(self._client, group_of(name, config)))}
        return {"offsets": self._of_source(config, lambda topic: of_offsets.shown_of_source(topic.follow(), name))}

    def alter_offsets(self, name: str, items: list[of_offsets.Item]) -> dict[str, Any]:
        """Change offsets of a stopped connector. Raises HttpError 400, 404, 500."""
        config = self._stopped(name)
        if _kind_of(config) == "sink":
            changes = of_offsets.sink_offsets(items)
            self._alter_group(name, group_of(name, config), changes)
            alter_in_target(config, self._resolver, changes)
        else:
            check_offsets(config, items)
            self._write_source(name, config, lambda records: of_offsets.source_changes(records, name, items))
        return ALTERED

    def reset_offsets(self, name: str) -> dict[str, Any]:
        """Remove the offsets of a stopped connector. Raises HttpError 400, 404."""
        config = self._stopped(name)
        if _kind_of(config) == "sink":
            with self._lock, _explained(name, "reset"):
                known = groups.offsets_of(self._client, group_of(name, config))
                groups.remove_group(self._client, group_of(name, config))
            alter_in_target(config, self._resolver, dict.fromkeys(known))
        else:
            self._write_source(name, config, lambda records: dict.fromkeys(of_offsets.keys_of_source(records, name)))
        return RESET

    def _stopped(self, name: str) -> Config:
        configs = self._there(name)
        if configs.target(name) is not Target.STOPPED or configs.tasks(name):
            raise errors.must_be_stopped(name)
        return configs.connectors[name]

    def _alter_group(self, name: str, group: str, changes: Mapping[of_offsets.Place, int | None]) -> None:
        if any(offset is not None and offset < 0 for offset in changes.values()):
            raise errors.unusable(f"Failed to modify offsets for sink connector {name}")
        with self._lock, _explained(name, "alter"):
            groups.remove_offsets(self._client, group, [place for place, offset in changes.items() if offset is None])
            groups.set_offsets(self._client, group, {place: offset for place, offset in changes.items() if offset is not None})

    def _write_source(self, name: str, config: Config, decide: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        def write(topic: PartitionedTopic[Any]) -> None:
            with self._lock:
                self._fence(name, config)  # first, so that no task writes an offset that this does not see
                topic.put(self._client, decide(topic.follow()))

        self._of_source(config, write)

    def _fence(self, name: str, config: Config) -> None:
        """End the transactions of tasks that may still run somewhere: none of them writes an offset after this."""
        group = self._worker.settings["group.id"]
        most = self._resolver.resolved({TASKS_MAX: config.get(TASKS_MAX) or "1"})[TASKS_MAX]
        for task in range(min(int(most), limits.MAX_JOBS)):
            plan = transactions.init_producer_id(self._client.config, self._client.cluster, f"{group}-{name}-{task}")
            self._client.run(plan)

    def _of_source(self, config: Config, use: Callable[[PartitionedTopic[Any]], R]) -> R:
        own = (config.get("offsets.storage.topic") or "").strip()
        if not own or own == self._topics.names[OFFSETS]:
            return use(self._topics.offsets)
        topic = offsets_topic(self._config, own, self._worker.settings)
        try:
            return use(topic)
        finally:
            topic.close()

    # -- checks and loggers

    def validate(self, config: Config) -> dict[str, Any]:
        """What there is to say of a config. Raises HttpError 400, 500."""
        return validate(config, self._worker.settings, self._resolver)

    def set_level(self, name: str, level: str) -> None:
        """Set the level of a logger in all workers."""
        self._change(lambda _now: {LOGGER + name: {"level": level}})

    def _there(self, name: str) -> Configs:
        configs = self._topics.configs()
        if name not in configs.connectors:
            raise errors.not_found(name)
        return configs

    def _change(self, decide: Callable[[Configs], Changes]) -> Configs:
        with self._lock:
            self._topics.change_configs(self._client, decide)
        self._leader.wake()
        return self._topics.configs()

    @staticmethod
    def _info(configs: Configs, name: str) -> dict[str, Any]:
        if name not in configs.connectors:
            raise errors.not_found(name)
        tasks = [{"connector": name, "task": at} for at in range(len(configs.tasks(name)))]
        return {"name": name, "config": masked(configs.connectors[name]), "tasks": tasks, "type": _kind(configs, name)}


@contextmanager
def _explained(name: str, what: str) -> Iterator[None]:
    """Turn errors about a group into refusals."""
    try:
        yield
    except groups.StillRuns:
        raise errors.still_runs(name, what) from None
    except (KafkaError, ClientError, groups.UnknownPlace) as error:
        raise errors.unusable(f"Failed to {what} consumer group offsets for connector {name}: {error}") from None


def _kind(configs: Configs, name: str) -> str:
    return _kind_of(configs.connectors.get(name, {}))


def _kind_of(config: Config) -> str:
    found = kinds_of(config)
    return "unknown" if found is None else found.kind


def group_of(name: str, config: Config) -> str:
    """The consumer group of a sink."""
    return config.get("consumer.override.group.id") or f"connect-{name}"


def masked(config: Config) -> dict[str, str | None]:
    """A config without its passwords; references to them stay."""
    secrets = secrets_of(config)
    return {key: HIDDEN if key in secrets and value and not is_reference(value) else value for key, value in config.items()}


def unmasked(config: Config, before: Config) -> dict[str, str | None]:
    """A config that came back with its passwords hidden: they stay what they were."""
    return {key: before[key] if value == HIDDEN and before.get(key) else value for key, value in config.items()}
