"""Options that are right and wrong, beside what Spark's own connector made of them; `docs/spark.md` tells the differences."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.testing import Broker
from tests.pipelines.beside_spark.cases import CASES, Case
from tests.pipelines.beside_spark.differences import DIFFERENCES, SUBJECTS
from tests.pipelines.beside_spark.ours import outcome
from tests.pipelines.beside_spark.record import RECORDED
from tests.pipelines.beside_spark.topics import made

READING = [case for case in CASES if case.kind != "write"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with Broker() as broker, made(broker.bootstrap_servers):
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def recorded() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())
    return found


def test_every_case_is_recorded(recorded: dict[str, dict[str, Any]]) -> None:
    assert {case.name for case in CASES} == recorded.keys()


@pytest.mark.parametrize("case", READING, ids=lambda case: case.name)
def test_reading_is_as_with_sparks_connector(case: Case, server: str, recorded: dict[str, dict[str, Any]]) -> None:
    ours, theirs = outcome(server, case), recorded[case.name]
    differs = DIFFERENCES.get(case.name)
    if differs is not None:
        assert "took" in ours if differs.takes else "refused" in ours, ours
        assert ours.get("took") != theirs.get("took"), "it does not differ any more"
    elif "took" in theirs:
        assert ours == theirs
    else:
        assert "refused" in ours, theirs
        subject = next((subject for option, subject in SUBJECTS.items() if option in case.given), "")
        assert subject in ours["refused"]
