"""Runs of two clusters with a mirror link pass, and each deliberate fault of mirroring is found."""

from __future__ import annotations

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
