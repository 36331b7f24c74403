"""The stored results of the Spark benchmarks, and the blocks of the page that they fill."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.spark import page
from bench.spark.page import CONNECTOR, NOTHING, Figures, Table, Way, rendered, times, write_block


def _run(rate: float, cpu: float = 1.0) -> Figures:
    return {"rows_per_s": rate, "cpu_s_per_million": cpu, "peak_mb": 900.0}


def test_the_ratio_is_that_of_the_pairs_and_is_judged() -> None:
    ours, connector = [_run(rate) for rate in (4.0, 30.0, 3.0)], [_run(rate) for rate in (2.0, 10.0, 2.0)]
    way = Way("batch", 1.5, {"ours": ours, "other": [_run(1.0)] * 3, CONNECTOR: connector})
    assert times(way) == pytest.approx((2.0, 1.0))
    text = rendered(Table("from a broker", [way, Way("stream", 1.5, {**way.runs, "ours": [_run(2.0)] * 3})]))
    assert "| batch | 4 (3 to 30) | 1 (1 to 1) | 2 (2 to 10) | 2.00x |  | 1.00x | >= 1.5x: yes |" in text
    assert "| 1.00x |  | 1.00x | >= 1.5x: **no** |" in text
    assert "| batch | 1 / 900 | 1 / 900 | 1 / 900 |  |" in text


def test_what_python_may_reach_stands_beside() -> None:
    runs = {"ours": [_run(3.0)], CONNECTOR: [_run(2.0)], NOTHING: [_run(5.0)]}
    assert times(Way("batch", 1.5, runs), NOTHING) == pytest.approx((2.5, 1.0))
    assert "| 1.50x | 2.50x | 1.00x | >= 1.5x: yes |" in rendered(Table("from a broker", [Way("batch", 1.5, runs)]))


def test_one_alone_is_not_judged() -> None:
    assert times(Way("batch", 1.5, {CONNECTOR: [_run(2.0)]})) is None
    assert times(Way("batch", 1.5, {"ours": [_run(2.0)]})) is None


def test_what_is_kept_fills_its_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {bench: tmp_path / path.name for bench, path in page.RESULTS.items()}
    monkeypatch.setattr(page, "RESULTS", kept)
    found = Table("from a broker", [Way("batch", 1.5, {"ours": [_run(4.0)], CONNECTOR: [_run(2.0)]})])
    page.keep(page.SOURCE, "python bench", 1, 0.1, [found])
    written = tmp_path / "spark.md"
    written.write_text(f"before\n<!-- begin of {page.SOURCE} -->\nold\n<!-- end of {page.SOURCE} -->\nafter\n")
    page.write_blocks(written)
    text = written.read_text()
    assert text.startswith("before\n<!-- begin of bench/spark/compare.py -->\nMeasured 1 times on ")
    assert "Measured by `python bench`. Other work took 10% of the machine's CPU meanwhile.\n*Peak MB* is" in text
    assert "\n\n| from a broker: rows/s |" in text
    assert text.endswith("<!-- end of bench/spark/compare.py -->\nafter\n")


def test_a_page_without_the_marks_is_an_error(tmp_path: Path) -> None:
    written = tmp_path / "spark.md"
    written.write_text("nothing\n")
    with pytest.raises(SystemExit, match="has no marks of x"):
        write_block("x", "text", written)
