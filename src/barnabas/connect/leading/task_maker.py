"""The tasks of connectors, as their classes make them of their configs: each in a thread of its own, so that a slow one holds up no other.

A class that raises is asked again after a pause, which grows. Nothing is kept over a change of the leader: a new one asks all classes
once, and finds the same tasks.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping

from barnabas.connect import catalog
from barnabas.connect.catalog import Kind
from barnabas.connect.definitions import connector
from barnabas.connect.functions import connector_class
from barnabas.connect.herder.state import Config
from barnabas.connect.herder.validation import CLASS, plugin_of
from barnabas.connect.references import Resolver, is_reference
from barnabas.errors import BarnabasError

logger = logging.getLogger(__name__)
FIRST_PAUSE_S, MOST_PAUSE_S = 1.0, 60.0
ERROR_CHARACTERS = 1_000


class _Answer:
    """What a class says to a config.

    Args:
        error: of the try before, which counts until this one has ended.
    """

    def __init__(self, config: Config, tries: int, error: str | None) -> None:
        self.config, self.tries, self.error = config, tries, error
        self.tasks: list[Config] | None = None
        self.needs_spark = False
        self.is_done = False
        self.at_s = 0.0

    @property
    def next_try_s(self) -> float:
        return self.at_s + min(FIRST_PAUSE_S * float(2**self.tries), MOST_PAUSE_S)


class TaskMaker:
    """Asks classes for tasks.

    Args:
        worker: settings of the workers.
        wake: called when an answer is there.
    """

    def __init__(self, worker: Mapping[str, str], resolver: Resolver, wake: threading.Event) -> None:
        self._worker, self._resolver, self._wake = worker, resolver, wake
        self._answers: dict[str, _Answer] = {}

    def tasks(self, name: str, config: Config, now_s: float) -> list[Config] | None:
        """The configs of the tasks; None while they are not known."""
        answer = self._answers.get(name)
        if answer is None or answer.config != config:
            answer = self._ask(name, config)
        elif answer.is_done and answer.tasks is None and now_s >= answer.next_try_s:
            answer = self._ask(name, config, answer.tries + 1, answer.error)
        return answer.tasks if answer.is_done else None

    def needs_spark(self, name: str) -> bool:
        """Whether the class of a connector whose tasks are known works with Spark."""
        return self._answers[name].needs_spark

    def failures(self) -> dict[str, str]:
        """Why classes make no tasks, by connector."""
        return {name: each.error for name, each in self._answers.items() if each.error is not None}

    def forget(self, name: str) -> None:
        """Ask again at the next call."""
        self._answers.pop(name, None)

    def keep(self, names: Mapping[str, object]) -> None:
        """Forget connectors that are gone."""
        for name in self._answers.keys() - names.keys():
            self.forget(name)

    def clear(self) -> None:
        """Forget everything."""
        self._answers.clear()

    def _ask(self, name: str, config: Config, tries: int = 0, error: str | None = None) -> _Answer:
        answer = self._answers[name] = _Answer(config, tries, error)
        threading.Thread(target=self._answer, args=(name, answer), name=f"connector-{name}", daemon=True).start()
        return answer

    def _answer(self, name: str, answer: _Answer) -> None:
        try:
            answer.tasks = task_configs(answer.config, self._worker, self._resolver)
            answer.needs_spark = connector_class(plugin_of(answer.config).load()).needs_spark
            answer.error = None
        except Exception as error:  # noqa: BLE001 - the class is a user's, and its error is the connector's status
            answer.error = hidden(str(error) or type(error).__name__, answer.config, self._resolver)
            logger.warning("event=connector-failed connector=%r error=%r", name, answer.error)
        answer.at_s = time.monotonic()
        answer.is_done = True
        self._wake.set()


def task_configs(config: Config, worker: Mapping[str, str], resolver: Resolver) -> list[Config]:
    """The config of each task: that of the connector, and what the class adds. References stay as they are.

    Raises:
        BarnabasError: of the config, or because there are too many tasks. The class may raise anything.
    """
    raw = {key: value for key, value in config.items() if value is not None}
    given = resolver.resolved(raw)
    found = catalog.find(raw.get(CLASS, "").strip(), (Kind.SOURCE, Kind.SINK))
    cls = connector_class(found.load())
    common = connector(worker, found.kind).parse(given)
    most, enforced = common["tasks.max"], common["tasks.max.enforce"]
    made = list(cls.tasks(cls.config.parse(given), most))
    if enforced and len(made) > most:
        raise TooManyTasks(
            f"The connector {raw.get('name')} has generated {len(made)} tasks, which is greater than {most}, the maximum number of "
            "tasks it is configured to create."
        )
    # a worker of Kafka Connect that takes over needs the class of its tasks, which is named so by convention
    task_class = f"{found.name.removesuffix('Connector')}Task" if found.name.endswith("Connector") else found.name
    return [{**raw, **{key: str(value) for key, value in each.items()}, "task.class": task_class} for each in made]


class TooManyTasks(BarnabasError):
    """A class makes more tasks than the config allows."""


def hidden(text: str, config: Config, resolver: Resolver) -> str:
    """An error in one line, without the values behind references."""
    raw = {key: value for key, value in config.items() if value is not None and is_reference(value)}
    try:
        given = resolver.resolved(raw)
    except BarnabasError:
        given = {}
    for key, value in given.items():
        if len(value) > 2:
            text = text.replace(value, raw[key])
    return " ".join(text.split())[:ERROR_CHARACTERS]
