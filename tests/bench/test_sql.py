"""The bench of SQL: its load tells answers and errors apart, and its section of the page names the sources of others' figures."""

from __future__ import annotations

import itertools

import pytest
from bench.servers import Barnabas
from bench.sql import __main__ as cases
from bench.sql import load, page
from bench.sql.systems import SqlServer
from bench.storage.result import Result
from bench.wire import BadAnswer

HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("answer", "whole"),
    [
        (b"HTTP/1.1 200", False),
        (HEAD + b"content-length: 2\r\n\r\n{", False),
        (HEAD + b"Content-Length: 2\r\n\r\n{}", True),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n", False),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", True),
    ],
)
def test_an_answer_over_http_is_whole_at_its_end(answer: bytes, whole: bool) -> None:
    assert load.http_whole(bytearray(answer)) is whole


def test_another_status_is_a_bad_answer() -> None:
    with pytest.raises(BadAnswer, match="404"):
        load.http_whole(bytearray(b"HTTP/1.1 404 Not Found\r\n\r\n"))


def test_an_answer_of_the_postgres_protocol_ends_when_the_server_is_ready() -> None:
    assert not load.postgres_whole(bytearray(load.BOUND + b"D"))
    assert load.postgres_whole(bytearray(load.BOUND + b"C\0\0\0\x0dSELECT 1\0" + load.READY))
    with pytest.raises(BadAnswer, match="SERROR"):
        load.postgres_whole(bytearray(b"E\0\0\0\7SERROR\0" + load.READY))


def test_all_of_it_is_measured() -> None:
    amounts = cases.Amounts(keys=50, rows=5_000, timed=5, seconds=0.05)
    results = {result.case: result for result in cases.measure(1, amounts)}
    assert all(value > 0 for result in results.values() for values in result.figures.values() for value in values)
    assert set(results["rows-8"].figures) == {cases.POSTGRES, cases.HTTP}
    assert results["ready"].met is not None


def test_a_statement_that_fails_ends_the_load() -> None:
    with Barnabas() as broker, SqlServer("{}:{}".format(*broker.address)) as server:
        wrong = itertools.repeat(load.http_request(server.http, "SELECT * FROM nothing"))
        with pytest.raises(BadAnswer, match="nothing"):
            load.rate(server.http, load.http_open, wrong, load.http_whole, 1, 5.0)
        with pytest.raises(BadAnswer, match="nothing"):
            load.postgres_open("SELECT * FROM nothing")(server.postgres)


def test_the_section_has_the_figures_and_the_sources() -> None:
    result = Result("p50", "one row", "ms", {"psycopg 3": [1.0]}, "< 2", met=True)
    kept = {
        "date": "2001-02-03",
        "command": "python -m bench.sql",
        "quick": True,
        "others_cpu": 0.1,
        "results": [result.as_json()],
    }
    text = page.render(kept)
    assert "| one row (ms) | psycopg 3 | 1 | < 2: yes |" in text
    assert "| RisingWave, point selects |" in text
    assert all(each.by in text for each in page.PUBLISHED)
