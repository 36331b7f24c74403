"""Folders and logs of jobs, and who may use an engine's folder."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from barnabas import limits
from barnabas.engine.folders import job_folder, job_log, safe_name
from barnabas.engine.holding import FolderInUse, HeldFolder
from barnabas.engine.rotating_log import RotatingLog, last_lines

STRANGE = ["", ".", "..", "a/b", "a_b", "/etc", "é", "e", "x" * 100, "x" * 101, "x" * 249, "-", "a b", "A", ".a", "\n", "\ud800"]


def test_each_name_has_a_folder_of_its_own_within_the_engine(tmp_path: Path) -> None:
    folders = {job_folder(tmp_path, name) for name in STRANGE}
    assert len(folders) == len(STRANGE)
    for each in folders:
        assert each.parent == tmp_path / "jobs"
        each.mkdir(parents=True)
    assert len(list((tmp_path / "jobs").iterdir())) == len(STRANGE)
    assert safe_name("orders-1.x_y") == "orders-1.x_y"
    assert job_folder(tmp_path, "a", 3) == tmp_path / "jobs" / "a" / "3"
    assert job_log(tmp_path, "a") == tmp_path / "jobs" / "a" / "log"


def test_a_log_has_a_limit_and_one_file_before_it(tmp_path: Path) -> None:
    assert RotatingLog(tmp_path / "x")._most_bytes == limits.MAX_JOB_LOG_BYTES
    log = RotatingLog(tmp_path / "a" / "log", most_bytes=100)
    for number in range(50):
        log.write(b"line %02d\n" % number)
    log.close()
    log.write(b"line 50\n")
    log.close()
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["log", "log.1"]
    assert all(path.stat().st_size <= 100 for path in (tmp_path / "a").iterdir())
    assert last_lines(tmp_path / "a" / "log", 12) == [f"line {number}" for number in range(39, 51)]
    assert last_lines(tmp_path / "a" / "log", 2, most_bytes=20) == ["line 49", "line 50"]
    assert last_lines(tmp_path / "missing", 5) == []
    assert limits.MAX_JOB_LOG_LINES > 1_000


def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = RotatingLog(tmp_path / "file" / "log")
    log.write(b"lost\n")
    log.close()
    assert (tmp_path / "file").read_text() == ""


def test_many_threads_write_whole_lines(tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "log", most_bytes=2_000)

    def write() -> None:
        for _ in range(200):
            log.write(b"x" * 20 + b"\n")

    threads = [threading.Thread(target=write) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    log.close()
    assert set(last_lines(tmp_path / "log", 1_000)) == {"x" * 20}


def test_a_folder_is_of_one_engine(tmp_path: Path) -> None:
    first, second = HeldFolder(tmp_path / "e"), HeldFolder(tmp_path / "e")
    first.hold("one")
    first.hold("one")
    with pytest.raises(FolderInUse, match="another engine uses the folder"):
        second.hold("one")
    first.close()
    second.hold("one")
    second.close()
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderInUse, match="cannot be used"):
        HeldFolder(tmp_path / "file" / "x").hold("one")


def test_the_jobs_of_another_cluster_are_set_aside_and_come_back(tmp_path: Path) -> None:
    def state(name: str) -> Path:
        return job_folder(tmp_path, name) / "state"

    def serve(cluster: str | None) -> None:
        held = HeldFolder(tmp_path)
        held.hold(cluster)
        held.close()

    serve("one")
    state("a").parent.mkdir(parents=True)
    state("a").write_text("of one")
    serve("two")
    assert not state("a").exists()
    state("b").parent.mkdir(parents=True)
    state("b").write_text("of two")
    serve(None)
    assert state("b").exists()
    serve("one")
    assert (state("a").read_text(), state("b").exists()) == ("of one", False)
    serve("two")
    assert (state("a").exists(), state("b").read_text()) == (False, "of two")


def test_an_engine_that_was_killed_while_it_set_jobs_aside(tmp_path: Path) -> None:
    """The id of the cluster is there, and its jobs are not back yet."""
    (tmp_path / "jobs.one").mkdir()
    (tmp_path / "jobs.one" / "a").write_text("of one")
    (tmp_path / "cluster").write_text("one\n")
    held = HeldFolder(tmp_path)
    held.hold("one")
    held.close()
    assert (tmp_path / "jobs" / "a").read_text() == "of one"
