"""Options and written rows, beside Spark's own connector: our source in Spark, and the connector again, so that its record stays true.

`tests/pipelines/test_beside_spark.py` compares reading, without Spark.
"""

from __future__ import annotations

import json
import sys

import pytest
from bench.spark.compare import connector_jars, connector_python

from tests.pipelines.beside_spark.cases import WRITES
from tests.pipelines.beside_spark.differences import DIFFERENCES
from tests.pipelines.beside_spark.record import RECORDED, ask

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]


def test_writing_is_as_with_sparks_connector() -> None:
    recorded = json.loads(RECORDED.read_text())
    wrong = []
    for case, ours in zip(WRITES, ask(sys.executable, "barnabas", WRITES), strict=True):
        differs = DIFFERENCES.get(case.name)
        takes = differs.takes if differs is not None else "took" in recorded[case.name]
        if takes != ("took" in ours):
            wrong.append((case.name, ours))
    assert wrong == []


def test_the_connector_is_as_recorded() -> None:
    recorded = json.loads(RECORDED.read_text())
    found = ask(str(connector_python()), "kafka", WRITES, str(connector_jars()))
    assert [case.name for case, each in zip(WRITES, found, strict=True) if each.keys() != recorded[case.name].keys()] == []
