"""Our broker's answers in the versions that Kafka 4 dropped against those of Kafka 3.9, field by field."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.testing import Broker
from tests.differential.compare import differences
from tests.differential.dropped.cases import GOLDEN, GUARDED, ON_ZOOKEEPER, SETTINGS, cases
from tests.differential.dropped.known import KNOWN
from tests.differential.dropped.talk import OldTalk
from tests.differential.runner import load, run
from tests.differential.talk import Address

SCENARIOS = cases()
CASES = [(module, name) for module, own in SCENARIOS.items() for name in own]
SHOWN = 40


@pytest.fixture(scope="module")
def guarded() -> Iterator[Address]:
    with Broker(config=SETTINGS | GUARDED) as broker:
        yield Address.of(broker.bootstrap_servers)


@pytest.fixture(scope="module")
def open_to_all() -> Iterator[Address]:
    with Broker(config=SETTINGS) as broker:
        yield Address.of(broker.bootstrap_servers)


@pytest.mark.parametrize(("module", "name"), CASES, ids=[name for _, name in CASES])
def test_the_answers_are_those_of_kafka_3(module: str, name: str, request: pytest.FixtureRequest) -> None:
    address = request.getfixturevalue("open_to_all" if module in ON_ZOOKEEPER else "guarded")
    found = differences(load(module, GOLDEN)[name], run(SCENARIOS[module][name], name, address, OldTalk))
    entries = [entry for entry in KNOWN if entry.scenario == name]
    unknown = [each for each in found if not any(entry.covers(each) for entry in entries)]
    assert not unknown, f"{len(unknown)} differences\n" + "\n".join(str(each) for each in unknown[:SHOWN])
    stale = [entry for entry in entries if not any(entry.covers(each) for each in found)]
    assert not stale, f"these no longer differ, delete them: {stale}"


def test_every_recording_is_of_a_scenario() -> None:
    assert {(path.stem, name) for path in GOLDEN.glob("*.json") for name in load(path.stem, GOLDEN)} == set(CASES)
