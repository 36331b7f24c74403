"""Results record how they were measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.cluster.__main__ import _keep as keep_cluster
from bench.storage.__main__ import _keep as keep_storage
from bench.storage.result import render as render_storage

from bench import quota, report


def test_a_command_is_told_without_where_its_results_went(monkeypatch: pytest.MonkeyPatch) -> None:
    assert report.command_of("bench.tls", ["--json", "/somewhere", "--repeat", "5"]) == "python -m bench.tls --repeat 5"
    monkeypatch.setattr("sys.argv", ["bench", "--quick"])
    assert report.command_of("bench.tls", None) == "python -m bench.tls --quick"


def test_results_keep_their_command_and_the_page_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "storage.json"
    keep_storage(path, [], "python -m bench.storage --repeat 3", quick=False)
    assert "Measured by `python -m bench.storage --repeat 3`." in render_storage(json.loads(path.read_text()))
    path = tmp_path / "cluster.json"
    keep_cluster(path, [], "python -m bench.cluster", quick=False)
    assert json.loads(path.read_text())["command"] == "python -m bench.cluster"


def test_results_without_a_command_have_no_sentence_of_one() -> None:
    page = {"date": "2026-01-01", "repetitions": 3, "results": []}
    assert "Measured by `python -m bench.quota --repeat" not in quota.render(page)
    assert report.by_command(page) == ""
    assert report.by_command({**page, "command": "python -m bench.tls"}) == " Measured by `python -m bench.tls`."
