"""The words of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.peers.peer import PeerUnavailable
from bench.peers.process import program
from bench.suite import front


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "nonsense"], "there is no nonsense"),
        (["run", "start", "--peers", "oracle"], "there is no oracle"),
        (["run", "--rounds", "0"], "0 is not a positive number"),
        (["run", "start", "idle", "--measures", "memory"], "--measures is for one case of linkedin-2011, "),
        (["run", "tls", "--measures", "rate"], "--measures is for one case of linkedin-2011, "),
        (["run", "growth", "--measures", "size", "--peers", "kafka"], "--measures is for all systems: "),
        (["run", "growth", "--measures", "size", "age"], "growth has no measure age; it has size, partitions, "),
        (["run", "growth", "--measures", "size", "--json", "no-such-folder"], "there are no results of growth yet"),
        (["run", "growth", "--measures", "size", "--rounds", "7"], "the results of growth were measured with {'rounds': 5, "),
        (["sprint"], "invalid choice: 'sprint'"),
    ],
)
def test_words_that_mean_nothing_end_with_2_and_a_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        front.main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_the_list_has_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(["list"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert listed == {*front.CASES, *front.OTHERS}


def test_the_guard_cannot_fail_the_run_of_ci() -> None:
    run = (Path(__file__).resolve().parents[2] / ".ci" / "run").read_text().splitlines()
    (guard,) = [line for line in run if "bench-guard" in line]
    assert guard.startswith("timeout ")
    assert " || echo " in guard


def test_a_program_that_is_not_there_is_named_with_its_package() -> None:
    with pytest.raises(PeerUnavailable, match=r"^no-such-server is not installed \(Debian package: a-package\)$"):
        program("no-such-server", "a-package")
