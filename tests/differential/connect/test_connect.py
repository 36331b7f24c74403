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
REGEX = "Java and Python name what is wrong with a pattern in words of their own"
WHOLE_KEY = "ours names the whole key"
STRICT = "Kafka Connect accepts it, and the task fails; ours refuses it"
REFUSED_HERE = (
    "InsertField without fields",
    "topic creation without partitions",
    "topic creation with none of them",
    "topic creation in words",
    "topic creation of a group without topics",
    "topic creation with a wrong pattern",
)
ANSWER = ("status", "type", "location", "body")
KNOWN: dict[str, tuple[tuple[str, ...], str]] = {
    **{f"{what} {each}": (ANSWER, STRICT) for each in REFUSED_HERE for what in ("validate", "create", "delete")},
    **{
        f"{what} {each}": ((part,), reason)
        for what, part in (("validate", "body"), ("create", MESSAGE))
        for each, reason in (
            ("RegexRouter without keys", REGEX), ("RegexRouter with a wrong pattern", REGEX), ("Cast to a wrong type", IN_JAVA),
            ("TopicNameMatches without a pattern", REGEX), ("TopicNameMatches with a wrong pattern", REGEX),
            ("topics.regex that is none", REGEX), ("a converter with a wrong key", WHOLE_KEY),
            ("twice the group of topics", "ours also says what the group lacks"),
        )
    },
    **dict.fromkeys(("create a class of a converter", "create a class of a transform"), ((MESSAGE,), LISTED)),
    "validate a plug-in version": (("body",), "ours names the key, and goes on to check the others"),
    "create a plug-in version": (("status", "body"), "Kafka Connect fails with an exception of its own"),
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
