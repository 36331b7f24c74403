"""Random requests, a leader that dies between any two writes, an engine at its own pace: in the end everything is as the users wished."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec import structs

from barnabas.connect.herder import requests
from barnabas.connect.herder.planning import CONFIG_TOPIC, Kinds, job_changes, works
from barnabas.connect.herder.records import Changes, Target
from barnabas.connect.herder.state import Configs, Statuses
from barnabas.connect.herder.statuses import Observer, status_changes
from barnabas.engine.jobs import ConnectorWork, Desired, Job, JobState, State
from barnabas.web.routing import HttpError

NAMES = ("a", "b", "a-0")
TOPIC = "connect-configs"
WORKER = {CONFIG_TOPIC: TOPIC}
OBSERVER = Observer("w:1", 1, "1.0")
STATES = {Target.STARTED: "RUNNING", Target.PAUSED: "PAUSED", Target.STOPPED: "STOPPED"}


def tasks_of(config: Mapping[str, Any]) -> list[Any]:
    """As the class makes them: as many as the config wishes."""
    return [{**config, "n": str(number)} for number in range(int(config["count"]))]


class World:
    """The topics, and what the users wished."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.configs: dict[str, Any] = {}
        self.statuses: dict[str, Any] = {}
        self.jobs: dict[str, Job] = {}
        self.states: dict[str, JobState] = {}
        self.wished: dict[str, tuple[dict[str, str], Target]] = {}

    def write(self, topic: dict[str, Any], changes: Mapping[str, Any]) -> None:
        topic.update(changes)
        for key in [key for key, value in topic.items() if value is None]:
            del topic[key]

    def request(self) -> None:
        """One request of a user, which the naive model understands too."""
        name = self.random.choice(NAMES)
        config = {"name": name, "count": str(self.random.randint(0, 3)), "k": str(self.random.random())}
        target = self.random.choice(list(Target))
        there = name in self.wished
        calls: dict[str, Callable[[Configs], Changes]] = {
            "create": lambda now: requests.create(now, name, config, target),
            "put": lambda _: requests.put(config, name),
            "target": lambda now: requests.set_target(now, name, target),
            "delete": lambda now: requests.delete(now, name),
        }
        kind = self.random.choice(list(calls))
        refused = 409 if kind == "create" and there else 404 if kind in {"target", "delete"} and not there else None
        if refused is not None:
            with pytest.raises(HttpError) as raised:
                calls[kind](Configs(dict(self.configs)))
            assert raised.value.status == refused
            return
        changes = calls[kind](Configs(dict(self.configs)))
        self.write(self.configs, changes)
        match kind:
            case "create":
                self.wished[name] = config, target
            case "put":
                self.wished[name] = config, self.wished[name][1] if there else Target.STARTED
            case "target":
                self.wished[name] = self.wished[name][0], target
            case "delete":
                del self.wished[name]

    def lead(self, writes: int) -> bool:
        """The steps of a leader, which dies before it writes once more than so often; whether it changed anything."""
        done = 0
        configs = Configs(dict(self.configs))
        for name, config in configs.connectors.items():
            if configs.target(name) is Target.STOPPED:
                continue
            changes = requests.task_records(configs, name, tasks_of(config))
            if changes:
                if done == writes:
                    return True
                self.write(self.configs, changes)
                done += 1
        configs = Configs(dict(self.configs))
        wanted: dict[str, ConnectorWork] = {}
        for name, config in configs.connectors.items():
            if configs.target(name) is not Target.STOPPED:
                wanted |= works(name, tasks_of(config), Kinds("Class", "source"), WORKER)
        jobs = job_changes(configs, wanted, self.jobs, TOPIC, 7)
        if jobs:
            if done == writes:
                return True
            self.write(self.jobs, jobs)
            done += 1
        said = status_changes(configs, Statuses(dict(self.statuses)), self.jobs, self.states, {}, TOPIC, OBSERVER)
        if said:
            if done == writes:
                return True
            self.write(self.statuses, said)
            done += 1
        return done > 0

    def work(self) -> None:
        """The engine does some of what it should."""
        self.states = {name: each for name, each in self.states.items() if name in self.jobs}
        for name, job in self.jobs.items():
            if self.random.random() < 0.7:
                state = State.PAUSED if job.desired is Desired.PAUSED else State.RUNNING
                self.states[name] = JobState(name, job.generation, job.restarts, state, 0)

    def settle(self) -> None:
        """No more requests and deaths."""
        self.random.random = lambda: 0.0  # type: ignore[method-assign]  # the engine does everything
        for _ in range(10):
            before = dict(self.states)
            has_changed = self.lead(99)
            self.work()
            if not has_changed and self.states == before:
                return
        raise AssertionError("it does not settle")


@pytest.mark.parametrize("seed", range(150))
def test_in_the_end_everything_is_as_wished(seed: int) -> None:
    world = World(seed)
    for _ in range(40):
        world.random.choice((world.request, lambda: world.lead(world.random.randint(0, 3)), world.work))()
    world.settle()
    jobs = {
        f"connect-{name}-{task}": (config["k"], target is Target.PAUSED)
        for name, (config, target) in world.wished.items()
        if target is not Target.STOPPED
        for task in range(int(config["count"]))
    }
    found = {name: (structs.asdict(job.work)["config"]["k"], job.desired is Desired.PAUSED) for name, job in world.jobs.items()}
    assert found == jobs
    configs, statuses = Configs(world.configs), Statuses(world.statuses)
    assert statuses.names() == world.wished.keys()
    for name, (config, target) in world.wished.items():
        status = statuses.connector(name)
        assert status is not None
        assert status.state == STATES[target]
        count = 0 if target is Target.STOPPED else int(config["count"])
        assert [each.state for each in statuses.tasks(name).values()] == [STATES[target]] * count
        assert len(configs.tasks(name)) == count
    assert {key.partition("-")[0] for key in world.configs} <= {"connector", "task", "commit", "target"}
