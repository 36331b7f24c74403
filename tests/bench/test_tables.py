"""The bench of tables: its topics hold the rows that it counts, and its section of the page says what was compared."""

from __future__ import annotations

import json

import pyarrow.compute as pc
import pytest
from bench.storage.result import Result, judge
from bench.storage.servers import Ours
from bench.tables import __main__ as cases
from bench.tables import loop, page
from bench.tables.topics import BATCH_RECORDS, COLUMNS, FIRST_ID, NAMES, RECORD_BYTES, batches, fill

from barnabas.tables import table

ROWS = BATCH_RECORDS + 20


def test_every_row_has_its_own_id_unless_keys_repeat() -> None:
    with Ours() as broker:
        fill(broker, "rows", ROWS)
        fill(broker, "updates", ROWS, keys=7)
        with table("rows", broker.bootstrap_servers, format="json", columns=COLUMNS) as rows:
            found = rows.arrow(["_key", *NAMES])
            assert rows.count() == ROWS
        assert found["id"].to_pylist() == list(range(FIRST_ID, FIRST_ID + ROWS))
        assert found["_key"].to_pylist() == [str(each).encode() for each in range(FIRST_ID, FIRST_ID + ROWS)]
        with table("updates", data_folder=broker.data_dir) as updates:
            assert pc.count_distinct(updates.arrow(["_key"])["_key"]).as_py() == 7
        assert loop.decoded(broker.bootstrap_servers, "rows", json.loads, 50) == 50
        assert loop.raw(broker.bootstrap_servers, "rows", 50) == 50
        assert loop.counted(broker.bootstrap_servers, "rows", 50) == 50


def test_the_size_of_a_row_in_the_log_is_known() -> None:
    ((batch, rows),) = batches(BATCH_RECORDS)
    assert rows == BATCH_RECORDS
    assert len(batch) / rows == pytest.approx(RECORD_BYTES, rel=0.05)


def test_all_of_it_is_measured() -> None:
    results = cases.measure(1, cases.Amounts(rows=2_000, looped=500, large_bytes=40_000 * RECORD_BYTES))
    assert all(value > 0 for result in results for values in result.figures.values() for value in values)
    assert {result.case for result in results if result.target} == {"count", "json", "offsets", "key"}


@pytest.mark.parametrize(("target", "met"), [(">= 1,000", True), ("< 1,100", True), ("< 90", False), ("", None)])
def test_a_target_is_judged_by_the_median_of_one_label(target: str, met: bool | None) -> None:
    result = Result("case", "title", "unit", {"ours": [1_000.0, 5.0, 1_050.0], "the loop": [1.0]}, target)
    judge(result, "ours")
    assert result.met is met


def test_the_section_has_the_figures_and_the_ratios() -> None:
    result = Result("json", "JSON", "rows/s", {"barnabas": [3e6], "the loop": [1e5]}, ">= 2,000,000", met=True, ratio=30.0)
    kept = {
        "date": "2001-02-03",
        "command": "python -m bench.tables",
        "quick": False,
        "others_cpu": 0.1,
        "results": [result.as_json()],
    }
    text = page.render(kept)
    assert "| JSON (rows/s) | barnabas | 3,000,000 | >= 2,000,000: yes |\n|  | the loop | 100,000 |  |" in text
    assert "- JSON: 30.0 times the loop." in text
    assert ": yes" not in page.render({**kept, "others_cpu": 0.5})
