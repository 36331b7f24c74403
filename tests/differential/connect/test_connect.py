"""Answers of Connect of barnabas against those that Kafka Connect gave, step by step.

`KNOWN` names the steps that differ, and why. Everything else is equal but for names of workers, versions, and texts of documentation.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import barnabas
from barnabas.testing import Broker
from tests.connect.fake_engine import FakeEngine
from tests.connect.workers import worker
from tests.differential.connect.record import GOLDEN, make_topic
from tests.differential.connect.script import FAILS, run
from tests.differential.connect.talk import Talk

pytestmark = pytest.mark.timeout(300)
STEPS: dict[str, dict[str, Any]] = json.loads(GOLDEN.read_text())
MESSAGE, TYPE = "message", "type"  # parts of an answer that may differ
IN_JAVA = "the text is that of an exception in Java"
LISTED = "Kafka Connect describes each plug-in; ours lists their names"
PREFIXED = "Kafka Connect puts the class of an exception before its text"
EMPTY = "Kafka Connect's error of an unknown path says no type"
LEAST = "our FileStream source refuses a batch.size below 1, and so a missing one"
KNOWN: dict[str, tuple[tuple[str, ...], str]] = {
    **dict.fromkeys(
        (
            "create broken", "create empty", "create list", "create text", "create without config", "create with a field too many",
            "create with another state", "create with an object in it", "put a list", "alter no field",
        ),
        ((MESSAGE,), IN_JAVA),
    ),
    **dict.fromkeys(("create with an unknown class", "create with an empty class", "put an unknown class"), ((MESSAGE,), LISTED)),
    **dict.fromkeys(
        (
            "no-such-path", "no-such-method", "no-such-method-of-the-root", "no-such-method-of-one", "none GET /tasks-config",
            "create with another type",
        ),
        ((TYPE,), EMPTY),
    ),
    "validate without class": ((MESSAGE,), PREFIXED),
    "alter sink of another topic": ((MESSAGE,), "ours says which topic or partition there is not"),
    "create with a batch in words": ((MESSAGE,), LEAST),
    "validate a batch in words": (("body",), LEAST),
}  # fmt: skip


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("worker")
    with Broker() as broker:
        make_topic(broker.bootstrap_servers)
        engine = FakeEngine(broker.bootstrap_servers, {f"connect-{FAILS}-0": "it cannot write the file"})
        with worker(broker.bootstrap_servers, folder, "ours") as it:
            talk = Talk(it.url, barnabas.__version__)
            run(talk)
        engine.close()
    return talk.answers


def without(answer: dict[str, Any], parts: tuple[str, ...]) -> dict[str, Any]:
    kept = {key: value for key, value in answer.items() if key not in parts}
    if MESSAGE in parts:
        kept["body"] = {key: value for key, value in kept["body"].items() if key != MESSAGE}
    return kept


@pytest.mark.parametrize("step", STEPS)
def test_the_answer_is_that_of_kafka_connect(step: str, answers: dict[str, dict[str, Any]]) -> None:
    parts, _ = KNOWN.get(step, ((), ""))
    assert without(answers[step], parts) == without(STEPS[step], parts)
    if parts:
        assert answers[step] != STEPS[step], "it does not differ any more"


def test_every_step_was_recorded(answers: dict[str, dict[str, Any]]) -> None:
    assert answers.keys() == STEPS.keys()
    assert KNOWN.keys() <= STEPS.keys()
