"""`python -m bench.cluster` keeps earlier measurements, and the page says how and when each was made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.cluster.__main__ import _keep
from bench.cluster.page import _measured_otherwise
from bench.report import Result
from bench.storage.result import Result as Resync


def result(name: str, ratio: float) -> Result:
    return {"name": name, "title": f"title of {name}", "ratio": ratio}


def kept(path: Path) -> dict[str, Any]:
    page: dict[str, Any] = json.loads(path.read_text())
    return page


def test_a_case_measured_again_says_how_and_when(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    _keep(path, [result("end-to-end-all", 1.0), result("end-to-end-1", 2.0)], "all of them", quick=False)
    page = kept(path)
    assert _measured_otherwise(page, page["cases"]) == ""
    of_before = {"date": "2001-02-03", "machine": {"processor": "of before"}}
    page.update(of_before)
    for case in page["cases"]:
        case["measured"].update(of_before)
    path.write_text(json.dumps(page))

    _keep(path, [result("end-to-end-1", 3.0)], "one of them", quick=True)
    page = kept(path)
    assert (page["command"], page["date"], page["quick"]) == ("all of them", "2001-02-03", False)
    assert page["machine"] == of_before["machine"]
    assert [(case["name"], case["ratio"]) for case in page["cases"]] == [("end-to-end-all", 1.0), ("end-to-end-1", 3.0)]
    way = page["cases"][1]["measured"]
    row = f"| title of end-to-end-1 | `one of them` | {way['date']}, in short measurements | {way['machine']['processor']} |\n"
    assert _measured_otherwise(page, page["cases"]).endswith("| --- | --- | --- | --- |\n" + row)


def test_where_all_is_measured_again_nothing_is_said_of_before(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    for command in ("first", "second"):
        _keep(path, [result("end-to-end-all", 1.0)], command, quick=False)
    page = kept(path)
    assert page["command"] == "second"
    assert _measured_otherwise(page, page["cases"]) == ""


def test_a_resync_measured_again_dates_the_page_for_it_says_no_date_itself(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    for command in ("first", "second"):
        _keep(path, [result(f"end-to-end-{command}", 1.0)], command, quick=False)
    assert kept(path)["command"] == "first"
    _keep(path, [], "third", quick=False, resync=[Resync("resync", "p99", "ms", {"alone": [1.0]})])
    page = kept(path)
    assert page["command"] == "third"
    assert [case["measured"]["command"] for case in page["cases"]] == ["first", "second"]
