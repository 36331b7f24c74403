"""The bench of sinks and sources: its cases are sound, and its section of the page has a line for each contender."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from bench.connect import sinks, sinks_page
from bench.connect.rows import lines_of, table_of
from bench.connect.sink_cases import SINKS
from bench.connect.source_cases import SOURCES, SUFFIX, SourceCase
from bench.connect.stores import PAGE_ROWS, Stores
from bench.storage.result import Result
from bench.wire import BadAnswer

from barnabas.connect.catalog import find


def test_names_of_cases_are_topics_and_differ() -> None:
    names = [each.name for each in SINKS] + [each.name for each in SOURCES]
    assert len(set(names)) == len(names)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for name in names)


WITHOUT_SERVER = [each for each in SOURCES if "mariadb" not in each.name and "postgresql" not in each.name]


@pytest.mark.parametrize("case", WITHOUT_SERVER, ids=lambda each: each.name)
def test_configs_of_sources_are_valid(case: SourceCase) -> None:
    with Stores() as stores:
        config = {"name": "x", **case.config(stores, "a-topic")}
        assert find(config["connector.class"]).load().validate(config) == {}


def test_a_file_appears_at_once_with_the_other_rows() -> None:
    case = next(each for each in SOURCES if each.name == "file-source-parquet")
    with Stores() as stores:
        case.prepare(stores, "t", 7)
        folder = stores.folder / "t"
        assert [each.name for each in folder.iterdir()] == ["a.parquet"]
        case.emit(stores, "t", 7)
        assert pq.read_table(folder / "b.parquet").equals(table_of(1, 7))
        assert not folder.with_suffix(SUFFIX).exists()


def test_pages_of_the_server_end_with_the_rows() -> None:
    with Stores() as stores:
        stores.web.rows = PAGE_ROWS + 1
        assert len(stores.web.page(0)) > len(stores.web.page(PAGE_ROWS)) > len(stores.web.page(PAGE_ROWS + 1))
        assert stores.web.page(PAGE_ROWS + 1) == b"[]"


def test_rows_as_lines_of_json() -> None:
    assert lines_of(table_of(3, 1)) == b'{"id":3,"name":"user-3","price":0.03,"amount":3,"note":"the row with the number 3"}\n'


def test_the_page_has_a_line_for_each_contender() -> None:
    results = [
        Result("a.rate", "a sink", "rows/s", {"barnabas": [20.0, 30.0], "psql \\copy": [40.0, 50.0]}),
        Result("a.cpu", "a sink", "s", {"barnabas": [1.5]}),
        Result("a.memory", "a sink", "MB", {"barnabas": [100.0]}),
    ]
    page = {
        "date": "2026-01-01",
        "command": "x",
        "quick": False,
        "others_cpu": 0.0,
        "results": [each.as_json() for each in results],
    }
    lines = sinks_page.render(page).splitlines()
    assert [each for each in lines if each.startswith("| a sink | barnabas | 25 (20 to 30) | 1.5 | 100 |")]
    assert [each for each in lines if each.startswith("|  | psql \\copy | 45 (40 to 50) |")]
    assert "- a sink: 0.55 times the rate of psql \\copy." in lines


def test_a_case_that_fails_is_absent_with_its_reason() -> None:
    absent: dict[str, str] = {}
    bench = sinks.Bench(1, absent)

    def fail() -> sinks.Figures:
        raise BadAnswer("no rows")

    bench._tried(SINKS[0], "barnabas", fail)
    bench._tried(SINKS[0], "barnabas", lambda: sinks.Figures(1, 1, 1))  # it is not tried again
    assert absent == {"postgresql-insert: barnabas": "no rows"}
    assert bench.results == {}
