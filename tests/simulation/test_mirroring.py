"""Runs of two clusters with a mirror link pass, and each deliberate fault of mirroring is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.testing.simulation.mirroring import canaries
from barnabas.testing.simulation.mirroring.canaries import Canary
from barnabas.testing.simulation.mirroring.scenario import MirrorScenario
from barnabas.testing.simulation.mirroring.simulation import MirrorSimulation

pytestmark = pytest.mark.timeout(600)  # some seconds on idle cores, much more on a busy machine


def as_drawn(_: MirrorScenario) -> None:
    """Change nothing."""


def losing_the_source(scenario: MirrorScenario) -> None:
    """All machines of the source lose their power, again and again; it does not flush each record."""
    scenario.source.kind, scenario.early_s = "blackout", -1.0
    scenario.source.properties.pop("log.flush.interval.messages", None)
    for incident in scenario.source.incidents:
        incident.kind = "blackout"


@pytest.mark.parametrize("seed", [0, 3])
def test_a_seed_passes_and_repeats_itself(seed: int) -> None:
    first, second = MirrorSimulation(seed).run(), MirrorSimulation(seed).run()
    assert first.failure is None
    assert first.counts["copied"] > 0
    assert (first.checksum, first.events) == (second.checksum, second.events)


def test_a_copy_stops_if_its_source_has_lost_records() -> None:
    verdict = MirrorSimulation(2, adapt=losing_the_source).run()
    assert verdict.failure is None
    assert verdict.counts["stopped"] > 0


MOST_SEEDS = 40
# Seeds that show the fault; after a change of the code, another one of the next MOST_SEEDS may.
FIRST_SEED: dict[Canary, int] = {
    canaries.without_comparing_the_last_batch: 4,
    canaries.without_the_epoch_of_the_last_batch: 8,
}


@pytest.mark.parametrize(
    ("canary", "adapt", "anomaly"),
    [
        (canaries.without_comparing_the_last_batch, losing_the_source, "which is of no timeline of its source"),
        (canaries.without_the_epoch_of_the_last_batch, losing_the_source, "which is of no timeline of its source"),
        (canaries.with_the_epoch_of_the_first_batch, as_drawn, "the source has lost records that are here"),
        (canaries.with_local_writes, as_drawn, "which is of no timeline of its source"),
        (canaries.promoting_before_the_end, as_drawn, "inconsistent offsets"),
        (canaries.with_ids_of_copied_producers, as_drawn, "is in the copy too"),
        (canaries.with_offsets_past_the_copy, as_drawn, "in the copy"),
    ],
)
def test_it_is_caught(canary: Canary, adapt: Callable[[MirrorScenario], None], anomaly: str) -> None:
    first = FIRST_SEED.get(canary, 0)
    with canary():
        failures = (MirrorSimulation(seed, adapt=adapt).run().failure for seed in range(first, first + MOST_SEEDS))
        assert any(failure is not None and anomaly in failure for failure in failures), f"no seed says {anomaly!r}"
