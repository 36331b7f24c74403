"""A short run of the fuzz target, so that it does not rot."""

from __future__ import annotations

from tests.fuzz.fuzz_values import run_seeded


def test_damaged_values_are_decoded_in_bulk_as_one_by_one() -> None:
    assert run_seeded(1.0, seed=7) > 0
