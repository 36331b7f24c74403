"""How long `python -m bench.cluster` warms a cluster up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from bench.cluster.__main__ import LOADS_SETTLED, MAX_WARM_UPS, _warm_up
from bench.cluster.cases import FULL, ClusterCase
from bench.cluster.servers import Cluster

NOWHERE = cast(Cluster, None)  # these loads use no cluster


def loads_of(figures: Iterator[float], *, higher_is_better: bool = True, is_latency: bool = False) -> int:
    """How many loads a case gets that has these figures one after the other."""
    loads = 0

    def run(_: Cluster, seconds: float) -> dict[str, float]:
        nonlocal loads
        loads += 1
        assert seconds == (FULL.latency_s if is_latency else FULL.warm_up_s)
        return {"figure": next(figures)}

    case = ClusterCase("case", "title", "figure", "unit", higher_is_better, None, run, is_latency=is_latency)
    _warm_up(case, NOWHERE, FULL)
    return loads


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_some_loads_in_a_row_that_are_no_faster_end_it(higher_is_better: bool) -> None:
    figures = (100.0, 105.0, 200.0, 201.0, 190.0, 215.0, 180.0, 180.0)
    given = iter(figures if higher_is_better else tuple(1 / figure for figure in figures))
    assert loads_of(given, higher_is_better=higher_is_better) == 3 + LOADS_SETTLED


def test_who_gets_faster_little_by_little_is_not_taken_for_settled() -> None:
    assert loads_of(1.05**load if load < 20 else 1.05**20 for load in range(MAX_WARM_UPS)) > 20


def test_who_gets_faster_for_ever_is_measured_at_last() -> None:
    assert loads_of(2.0**load for load in range(2 * MAX_WARM_UPS)) == MAX_WARM_UPS


def test_one_load_more_is_enough_where_delays_are_measured() -> None:
    assert loads_of(iter((10.0, 5.0, 5.0)), higher_is_better=False, is_latency=True) == 3
