"""What `python -m bench.cluster` keeps of earlier measurements, and by which command the page says each was made."""

from __future__ import annotations

import json
from pathlib import Path

from bench.cluster.__main__ import _keep
from bench.cluster.page import _measured_otherwise
from bench.report import Result


def result(name: str, ratio: float) -> Result:
    return {"name": name, "title": f"title of {name}", "ratio": ratio}


def test_a_case_measured_again_says_by_which_command(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    _keep(path, [result("end-to-end-all", 1.0), result("end-to-end-1", 2.0)], "all of them", quick=False)
    assert _measured_otherwise("all of them", json.loads(path.read_text())["cases"]) == ""
    _keep(path, [result("end-to-end-1", 3.0)], "one of them", quick=False)
    page = json.loads(path.read_text())
    assert page["command"] == "all of them"
    assert [(case["name"], case["ratio"]) for case in page["cases"]] == [("end-to-end-all", 1.0), ("end-to-end-1", 3.0)]
    assert _measured_otherwise(page["command"], page["cases"]) == " Of these by `one of them`: title of end-to-end-1."


def test_where_all_is_measured_again_nothing_is_said_of_before(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    for command in ("first", "second"):
        _keep(path, [result("end-to-end-all", 1.0)], command, quick=False)
    page = json.loads(path.read_text())
    assert page["command"] == "second"
    assert _measured_otherwise(page["command"], page["cases"]) == ""
