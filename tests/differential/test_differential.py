"""Our broker's answers against Kafka's recorded ones, field by field."""

from __future__ import annotations

import pytest

from tests.differential.compare import differences
from tests.differential.known import KNOWN, PAGE, page_with
from tests.differential.runner import GOLDEN, load, run, scenarios
from tests.differential.talk import Address

SCENARIOS = scenarios()
CASES = [(module, name) for module, own in SCENARIOS.items() for name in own]
SHOWN = 40  # the most differences shown for one scenario


@pytest.mark.parametrize(("module", "name"), CASES, ids=[name for _, name in CASES])
def test_the_answers_are_those_of_kafka(module: str, name: str, address: Address) -> None:
    found = differences(load(module)[name], run(SCENARIOS[module][name], name, address))
    entries = [entry for entry in KNOWN if entry.scenario == name]
    unknown = [each for each in found if not any(entry.covers(each) for entry in entries)]
    assert not unknown, f"{len(unknown)} differences\n" + "\n".join(str(each) for each in unknown[:SHOWN])
    stale = [entry for entry in entries if not any(entry.covers(each) for each in found)]
    assert not stale, f"these no longer differ, delete them: {stale}"


def test_every_recording_is_of_a_scenario() -> None:
    recorded = {(path.stem, name) for path in GOLDEN.glob("*.json") for name in load(path.stem)}
    assert recorded == set(CASES)


def test_every_known_difference_is_of_a_scenario() -> None:
    assert {entry.scenario for entry in KNOWN} <= {name for _, name in CASES}


def test_the_page_on_compatibility_shows_the_known_differences() -> None:
    text = PAGE.read_text()
    assert text == page_with(text), "write it anew: python -m tests.differential.record --page"
