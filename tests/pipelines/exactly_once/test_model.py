"""The sink's protocol under kills, zombies and speculation, by a seed: what is visible in the end is each row once."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from barnabas.client.transactions import Initialised
from barnabas.pipelines.exactly_once import protocol as p
from barnabas.pipelines.exactly_once.state import slot_id
from tests.pipelines.exactly_once.spark_like import ROWS, Cluster
from tests.pipelines.exactly_once.world import World

SEEDS = 100


def play(seed: int, **world: Any) -> tuple[Cluster, Counter[Any]]:
    rng = random.Random(seed)
    cluster = Cluster(World(**world), rng, batches=rng.randint(1, 5))
    cluster.play(rng.randint(20, 300), kills=rng.choice((0.0, 0.02, 0.1)))
    assert cluster.next_batch == cluster.batches
    assert cluster.world.open_ids == []
    return cluster, Counter(cluster.world.rows)


def expected(cluster: Cluster) -> Counter[Any]:
    return Counter((batch, row) for batch in range(cluster.batches) for row in range(ROWS))


@pytest.mark.parametrize("has_two_phase", [True, False])
def test_each_row_is_visible_once(has_two_phase: bool) -> None:
    for seed in range(SEEDS):
        cluster, rows = play(seed, has_two_phase=has_two_phase)
        assert rows == expected(cluster), f"seed {seed}"
        assert cluster.lost == 0


def test_ids_are_not_used_up() -> None:
    """Without failures there are no more ids than tasks, and the sink's own."""
    rng = random.Random(1)
    cluster = Cluster(World(), rng, batches=50)
    cluster.play(2000, kills=0.0)
    extra = [name for name in cluster.world.ids if name.count("/") > 3]
    slots = [name for name in cluster.world.ids if name.count("/") == 3]
    assert len(slots) <= 4
    assert len(extra) < cluster.nonces / 5  # extra ids come from speculation, which is frequent here


def test_timeouts_without_two_phase_commit_lose_nothing_and_repeat_only_what_is_told() -> None:
    told = 0
    for seed in range(SEEDS):
        rng = random.Random(seed)
        cluster = Cluster(World(has_two_phase=False), rng, batches=3)
        cluster.play(200, kills=0.03, timeouts=0.02)
        rows = Counter(cluster.world.rows)
        assert rows.keys() == expected(cluster).keys(), f"seed {seed}"
        assert {batch for (batch, _), times in rows.items() if times > 1} <= cluster.world.given_up, f"seed {seed}"
        told += len(cluster.world.given_up)
    assert told  # the seeds include such cases


def test_timeouts_do_not_touch_two_phase_transactions() -> None:
    for seed in range(SEEDS):
        rng = random.Random(seed)
        cluster = Cluster(World(), rng, batches=3)
        cluster.play(200, kills=0.03, timeouts=0.05)
        assert Counter(cluster.world.rows) == expected(cluster), f"seed {seed}"


def without_standing(handout: p.Handout, partition: int, nonce: str) -> p.Steps[p.Place]:
    """An attempt that does not look whether the sink moved on."""
    steps = original_attempt(handout, partition, nonce)
    answer: Any = None
    try:
        while True:
            instruction = steps.send(answer)
            if isinstance(instruction, p.AskStanding):
                answer = p.Standing(handout.token, handout.since)
            else:
                answer = yield instruction
    except StopIteration as end:
        place: p.Place = end.value
        return place


def aborting_claims(handout: p.Handout, partition: int, nonce: str) -> p.Steps[p.Place]:
    """An attempt that aborts what it finds under its id."""
    claimed: Initialised = yield p.ClaimOrdinary(slot_id(handout.sink, partition))
    standing = yield p.AskStanding()
    if standing != p.Standing(handout.token, handout.since):
        raise p.SinkTakenOver(handout.sink)
    return p.Place(slot_id(handout.sink, partition), claimed.owner)


original_attempt = p.attempt


@pytest.mark.parametrize("broken", [without_standing, aborting_claims])
def test_the_model_sees_what_is_wrong(monkeypatch: pytest.MonkeyPatch, broken: Any) -> None:
    """Canaries: parts of the protocol that are left out are missed."""
    monkeypatch.setattr(p, "attempt", broken)
    wrong = 0
    for seed in range(SEEDS):
        rng = random.Random(seed)
        cluster = Cluster(World(), rng, batches=rng.randint(1, 5))
        cluster.play(rng.randint(20, 300), kills=rng.choice((0.0, 0.02, 0.1)))
        wrong += Counter(cluster.world.rows) != expected(cluster) or bool(cluster.world.open_ids)
    assert wrong
