"""The scenarios by name, and how one is run against a broker."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from tests.differential import script
from tests.differential.compare import Recording
from tests.differential.talk import Address, Talk

GOLDEN = Path(__file__).parent / "golden"
Scenario = Callable[[Talk], None]

# Settings of both brokers: a single node, and short rebalance delays.
CONFIG = {
    "group.initial.rebalance.delay.ms": "150",
    "group.min.session.timeout.ms": "500",
    "group.max.size": "3",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "delete.topic.enable": "true",
    "num.partitions": "2",
}

AS_KAFKA_4 = {"api.versions.oldest": "kafka-4"}  # for barnabas in comparisons with Kafka 4


def scenarios(package: ModuleType = script) -> dict[str, dict[str, Scenario]]:
    """Module -> scenario's name -> function: every public function of a script module that takes a talk."""
    found: dict[str, dict[str, Scenario]] = {}
    for module in sorted(each.name for each in pkgutil.iter_modules(package.__path__)):
        page = importlib.import_module(f"{package.__name__}.{module}")
        own = {
            name: each for name, each in vars(page).items() if callable(each) and getattr(each, "__module__", "") == page.__name__
        }
        matching = {name.replace("_", "-"): each for name, each in own.items() if _is_scenario(name, each)}
        if matching:
            found[module] = matching
    return found


def _is_scenario(name: str, function: Scenario) -> bool:
    code = getattr(function, "__code__", None)
    return not name.startswith("_") and code is not None and code.co_varnames[: code.co_argcount] == ("talk",)


def run(scenario: Scenario, name: str, address: Address, talks: type[Talk] = Talk) -> Recording:
    """The recording of one scenario."""
    talk = talks(address, name)
    try:
        scenario(talk)
    finally:
        talk.close()
    return talk.recording


def load(module: str, folder: Path = GOLDEN) -> dict[str, Recording]:
    """Kafka's recorded answers to the scenarios of a module."""
    content: dict[str, Recording] = json.loads((folder / f"{module}.json").read_text())
    return content


def save(module: str, recordings: dict[str, Recording], folder: Path = GOLDEN) -> None:
    """Write a golden file, a line for each step, so that a change of Kafka's shows as a change of lines."""
    blocks = []
    for name, recording in recordings.items():
        steps = ",\n".join(f"  {json.dumps(step)}: {json.dumps(answer)}" for step, answer in recording.items())
        blocks.append(f" {json.dumps(name)}: {{\n{steps}\n }}")
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.json").write_text("{\n" + ",\n".join(blocks) + "\n}\n")
