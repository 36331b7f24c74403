"""Our broker's answers in the versions that Kafka 4 dropped against those of Kafka 3.9, field by field."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.protocol.messages import APIS
from barnabas.testing import Broker
from tests.differential.compare import differences
from tests.differential.dropped.cases import GOLDEN, GUARDED, ON_ZOOKEEPER, SETTINGS, cases
from tests.differential.dropped.known import KNOWN, page_with_table
from tests.differential.dropped.talk import FIRST_KEPT, OldAddress, OldTalk
from tests.differential.known import PAGE
from tests.differential.runner import load, run

SCENARIOS = cases()
CASES = [(module, name) for module, own in SCENARIOS.items() for name in own]
SHOWN = 40
LISTENERS = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"


@pytest.fixture(scope="module")
def guarded() -> Iterator[OldAddress]:
    with Broker(config=SETTINGS | GUARDED | {"listeners": LISTENERS}) as broker:
        yield OldAddress.at(broker.listeners["PLAINTEXT"], int(broker.listeners["SASL_PLAINTEXT"].rpartition(":")[2]))


@pytest.fixture(scope="module")
def open_to_all() -> Iterator[OldAddress]:
    with Broker(config=SETTINGS) as broker:
        yield OldAddress.at(broker.bootstrap_servers)


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


def test_every_known_difference_is_of_a_scenario() -> None:
    assert {entry.scenario for entry in KNOWN} <= {name for _, name in CASES}


def test_the_page_on_compatibility_shows_the_known_differences() -> None:
    text = PAGE.read_text()
    assert text == page_with_table(text), "write it anew: python -m tests.differential.dropped.record --page"


def test_every_api_with_dropped_versions_is_asked_in_each_of_them() -> None:
    asked = {tuple(step.split(" ")[:2]) for module, name in CASES for step in load(module, GOLDEN)[name]}
    wanted = {(APIS[key][1], f"v{version}") for key, first in FIRST_KEPT.items() for version in range(first)}
    assert wanted <= asked
