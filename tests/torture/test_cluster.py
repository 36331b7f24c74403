"""A short form of the torture of a cluster, and that its checker sees what it is there to see."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.torture.check import Broken
from tests.torture.cluster.__main__ import main
from tests.torture.cluster.check import Checker
from tests.torture.cluster.load import Book
from tests.torture.cluster.network import Loopback, NoNetwork
from tests.torture.cluster.report import load, markdown_of, save, times_of
from tests.torture.cluster.rounds import Plan, Round, longest_gap

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(400)  # six servers and four clients start slowly on a busy machine
def test_kills_of_a_cluster_lose_nothing() -> None:
    command = [sys.executable, "-m", "tests.torture.cluster", "--rounds", "2", "--kinds", "kill-leader,kill-controller"]
    done = subprocess.run([*command, "--clients", "python", "--loopback"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "barnabas: 2 rounds in" in done.stdout
    assert "all there and once" in done.stdout


class ReadAlready(Checker):
    """Of a log that is told, and not read from brokers."""

    def _read(self) -> None:
        """All of it is known."""


class Told:
    """A checker and a book in which one producer wrote `records` to partition 0, as the log has them."""

    def __init__(self, records: list[str]) -> None:
        self.book = Book(["python"])
        self.checker = ReadAlready("127.0.0.1:1", self.book)
        self.producer = self.book.of_producer("python")
        self.member = self.book.of_member("python-consumer-1", "python")
        for value in records:
            self.checker._take(0, value)

    def check(self) -> None:
        self.checker.check()


LOG = ["python 0 0", "python 0 1", "python 0 2"]


def test_what_is_right_passes() -> None:
    told = Told(LOG)
    for sequence in range(3):
        told.producer(f"A 0 {sequence} {sequence}")
        told.member(f"R 0 {sequence} {LOG[sequence]}")
    told.producer("E 0 3")
    told.check()
    told.checker.check_end()
    assert told.checker.unread() == ""


@pytest.mark.parametrize(
    ("value", "fault"),
    [("python 0 2", "duplicate"), ("python 0 1", "duplicate"), ("python 0 4", "lost write"), ("python 1 3", "is of partition 1")],
)
def test_a_log_that_is_wrong_is_seen(value: str, fault: str) -> None:
    told = Told(LOG)
    with pytest.raises(Broken, match=fault):
        told.checker._take(0, value)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("A 0 3 3", "lost write"),
        ("A 0 1 2", "inconsistent offsets"),
        ("F 0 1 _MSG_TIMED_OUT", "given up"),
    ],
)
def test_a_producer_that_was_told_wrong_is_seen(words: str, fault: str) -> None:
    told = Told(LOG)
    told.producer(words)
    with pytest.raises(Broken, match=fault):
        told.check()


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["R 0 1 python 0 0"], "got 'python 0 0'"),
        (["R 0 3 python 0 3"], "got 'python 0 3'"),
        (["+ 0", "R 0 0 python 0 0", "R 0 2 python 0 2"], "poll skip"),
        (["+ 0", "R 0 1 python 0 1", "R 0 0 python 0 0"], "poll skip"),
    ],
)
def test_a_consumer_that_got_something_else_is_seen(words: list[str], fault: str) -> None:
    told = Told(LOG)
    for each in words:
        told.member(each)
    with pytest.raises(Broken, match=fault):
        told.check()


def test_a_partition_may_be_read_again_after_it_was_given_away() -> None:
    told = Told(LOG)
    for each in ("+ 0", "R 0 0 python 0 0", "R 0 1 python 0 1", "+ 0", "R 0 1 python 0 1"):
        told.member(each)
    told.check()
    assert "read 2 of 3" in told.checker.unread()


def test_what_was_sent_and_is_not_there_is_seen_at_the_end() -> None:
    told = Told(LOG)
    told.producer("E 0 4")
    with pytest.raises(Broken, match="3 records of python, 4 were sent"):
        told.checker.check_end()


def test_the_longest_time_without_a_record_is_found_across_the_edges_of_a_round() -> None:
    book = Book(["python"])
    for index in book.written:
        book.written[index] += [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert longest_gap(book, 2.5, 3.5) == 1.0
    book.written[2][:] = [0.0, 1.0, 5.5, 6.0]
    assert longest_gap(book, 2.5, 3.5) == 4.5


def test_times_are_collected_by_kind_and_in_all(tmp_path: Path) -> None:
    rounds = [Round(1, "kill-leader", "a", 0.5, 1), Round(2, "cut-leader", "b", 7.0, 1), Round(3, "kill-leader", "a", 0.25, 1)]
    assert times_of(rounds) == {"kill-leader": [0.5, 0.25], "cut-leader": [7.0], "all": [0.5, 7.0, 0.25]}
    save({"barnabas": rounds}, Plan(3, 1), tmp_path / "times.json")
    assert markdown_of(load(tmp_path / "times.json")).splitlines() == [
        "| kind of round | barnabas |",
        "|---|---:|",
        "| `kill-leader` | 0.38 / 0.50 (2) |",
        "| `cut-leader` | 7.00 / 7.00 (1) |",
        "| `all` | 0.50 / 7.00 (3) |",
    ]


def test_without_namespaces_nothing_can_be_cut(capsys: pytest.CaptureFixture[str]) -> None:
    with Loopback(["a", "b"]) as network:
        assert network.address("a") != network.address("b")
        with pytest.raises(NoNetwork):
            network.block("a", "b")
    with pytest.raises(SystemExit) as ended:
        main(["--kinds", "kill-leader,never"])
    assert ended.value.code == 2
    assert "there is no kind of round 'never'" in capsys.readouterr().err
