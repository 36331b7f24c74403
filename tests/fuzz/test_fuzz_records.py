"""A short run of the fuzz target, so that it does not rot."""

from __future__ import annotations

from tests.fuzz.fuzz_records import run_seeded


def test_damaged_batches_do_no_harm() -> None:
    assert run_seeded(1.0, seed=7) > 0
