"""The bench of registries: its load generator tells apart answers and failures, and the page says what was not measured."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from bench.peers.peer import PeerUnavailable
from bench.registry import load, page, systems
from bench.registry.__main__ import _judge
from bench.storage.result import Result
from bench.wire import BadAnswer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = _answer

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield "127.0.0.1", server.server_address[1]
        server.shutdown()
        thread.join()


def test_all_requests_are_answered_once(address: tuple[str, int]) -> None:
    requests = [load.request(address, "POST", f"/subjects/{number}", b"{}") for number in range(20)]
    assert load.rate(address, requests, 3) > 0
    delays = load.delays_ms(address, requests, per_s=10_000, connections=3)
    assert len(delays) == 20
    assert delays == sorted(delays)


def test_another_status_is_a_bad_answer(address: tuple[str, int]) -> None:
    with pytest.raises(BadAnswer, match="404"):
        load.rate(address, [load.request(address, "GET", "/missing")], 1)


def test_reads_go_without_wrk(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "WRK", None)
    assert load.reads(address, 1, 5, connections=2, seconds=0.01) > 0


def test_the_load_runs_against_a_server_that_does_nothing() -> None:
    with systems.Bare() as bare:
        requests = [load.request(bare.address, "POST", "/subjects/s/versions", b"{}" * size) for size in (1, 50_000, 2)]
        assert load.rate(bare.address, requests, 2) > 0
        assert load.delays_ms(bare.address, [load.request(bare.address, "GET", "/")], 1_000, 1)


def test_no_recent_python_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(systems, "LEAST_PYTHON", (9, 9))
    with pytest.raises(PeerUnavailable, match=r"no Python 9\.9 or later is installed, which Karapace needs"):
        systems.karapace_python()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            "  No solution found:\n  ╰─▶ Because a was not found in the\n  registry and you require a==1, we give up.",
            "a was not found in the registry",
        ),
        ("error: Could not connect.\n", "error: Could not connect"),
    ],
)
def test_why_an_environment_cannot_be_made_is_one_line(said: str, why: str) -> None:
    assert systems._words(said) == why


@pytest.mark.parametrize(("target", "met"), [(">= 1,000", True), ("< 1,100", True), ("< 90", False), (">= 3,000", False)])
def test_a_target_is_judged_by_our_median(target: str, met: bool) -> None:
    result = Result("case", "title", "unit", {"barnabas": [1_000.0, 5.0, 1_050.0], "Karapace": [1.0]}, target)
    _judge(result)
    assert result.met is met


def test_the_page_says_what_was_not_measured() -> None:
    result = Result("get", "GET by id", "requests/s", {"barnabas": [9_000.0]}, ">= 8,000", met=True)
    kept = {
        "date": "2001-02-03", "command": "python -m bench.registry", "quick": False, "reader": "wrk",
        "absent": {"Karapace": "no Python 3.12"}, "others_cpu": 0.25, "results": [result.as_json()],
    }  # fmt: skip
    text = page.render(kept)
    assert "Other work took 25% of the machine's CPU meanwhile." in text
    assert "Karapace was not measured: no Python 3.12." in text
    assert "| GET by id (requests/s) | barnabas | 9,000 | >= 8,000: yes |" in text
    assert "| GET by id (requests/s) | barnabas | 9,000 | >= 8,000 |" in page.render({**kept, "others_cpu": 0.5})
