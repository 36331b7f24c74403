"""Our broker's answers to right and wrong log-ins, compared with the recorded answers of Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.testing import Broker
from tests.differential.logins.known import KNOWN
from tests.differential.logins.record import GOLDEN, SETTINGS, flat, record
from tests.differential.logins.speaking import Place

LISTENERS = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"


@pytest.fixture(scope="module")
def answers() -> Iterator[dict[str, Any]]:
    with Broker({**SETTINGS, "listeners": LISTENERS}) as broker:
        ports = {name: int(address.rpartition(":")[2]) for name, address in broker.listeners.items()}
        yield flat(record(Place(("127.0.0.1", ports["PLAINTEXT"]), ("127.0.0.1", ports["SASL_PLAINTEXT"]))))


def test_the_answers_are_those_of_kafka(answers: dict[str, Any]) -> None:
    expected = flat(json.loads(GOLDEN.read_text()))
    different = {step: answer for step, answer in expected.items() if answers.get(step) != answer}
    lines = [f"{step}\n  kafka {answer}\n  ours  {answers.get(step)}" for step, answer in different.items() if step not in KNOWN]
    assert not lines, f"{len(lines)} differences\n" + "\n".join(lines)
    assert sorted(KNOWN) == sorted(different), "what differs no more is not known any more"
