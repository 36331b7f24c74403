"""The simulator itself: seeds pass, a seed repeats itself to the byte, and faults put in on purpose are found."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable

import pytest

from barnabas.testing.simulation import canaries
from barnabas.testing.simulation.__main__ import main
from barnabas.testing.simulation.runner import MIRROR, run_seed
from barnabas.testing.simulation.simulated_run import Verdict
from barnabas.testing.simulation.simulation import Simulation

SEEDS = 50  # `make sim` runs 2,000
SLICES = 5  # so that a failure names a few seeds, and no test takes long


@pytest.mark.parametrize("part", range(SLICES))
def test_seeds_pass(part: int) -> None:
    failed = [v for v in map(run_seed, range(part, SEEDS, SLICES)) if v.failure]
    assert not failed, "\n".join(f"--seed {v.seed}: {v.failure}" for v in failed)


@pytest.mark.parametrize(("seed", "profile"), [(9, None), (3, MIRROR)])
def test_a_seed_is_one_run_whatever_the_hashes_of_strings(seed: int, profile: str | None) -> None:
    program = f"from barnabas.testing.simulation.runner import run_seed; print(run_seed({seed}, {profile!r}))"
    outputs = set()
    for hash_seed in ("1", "3"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            timeout=110,
            check=True,
        )
        outputs.add(done.stdout)
    assert outputs == {f"{run_seed(seed, profile)}\n"}


def test_the_command_repeats_a_seed_and_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "1", "--first", "9", "--processes", "1"]) == 0
    assert "1 seeds, 0 failed" in capsys.readouterr().out
    assert main(["--seed", "9"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith("python -m barnabas.testing.simulation --seed 9")
    assert "start broker-1#1" in lines[0]


@pytest.mark.parametrize("wrong", [["--seeds", "0"], ["--profile", "none"], ["--seed", "x"]])
def test_arguments_that_make_no_sense_are_refused(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(wrong)
    assert refused.value.code == 2


def first_failure(verdicts: Iterable[Verdict], text: str = "") -> str:
    """The first failure that contains `text`: a deliberate fault may show in other ways before."""
    return next((v.failure for v in verdicts if v.failure and text in v.failure), "")


def test_a_broker_that_does_not_sync_is_caught() -> None:
    runs = (Simulation(seed, profile="flush", wrap_files=canaries.WithoutSync).run() for seed in range(20))
    assert first_failure(runs, "was acknowledged or read, and the log ends at")


def test_a_broker_that_acknowledges_before_it_syncs_the_records_is_caught() -> None:
    failure = first_failure(Simulation(seed, profile="flush", wrap_files=canaries.WithoutRecordSync).run() for seed in range(20))
    assert "was acknowledged or read, and the log ends at" in failure


def test_a_recovery_that_checks_no_crc_is_caught() -> None:
    with canaries.without_checksums():
        # only rare damage shows this fault
        failure = first_failure(Simulation(seed, profile="power").run() for seed in range(50, 200))
    assert "the CRC does not match" in failure


def test_a_recovery_that_cuts_one_batch_too_many_is_caught() -> None:
    with canaries.truncation_off_by_one():
        assert first_failure(
            (Simulation(seed, profile="kill").run() for seed in range(150)), "was acknowledged or read, and the log ends at"
        )


def test_reads_that_check_no_crc_are_caught() -> None:
    with canaries.reads_without_checksums():
        failure = first_failure(Simulation(seed, profile="rot").run() for seed in range(60))
    assert "wrong checksum" in failure


def test_a_cleaner_that_does_not_sync_is_caught() -> None:
    # most seeds never lose power between a cleaning and the next sync of the same file
    runs = (Simulation(seed, profile="flush", wrap_cleaner_files=canaries.WithoutSync).run() for seed in range(310, 330))
    assert first_failure(runs, "the last record of")
