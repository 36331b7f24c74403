"""Where a line of ours bends, and why: no curve that falls is shown without a sentence.

A line bends where a place has less than `KEPT` of the best place before it. That is found in the results; why it is so was measured once
and is written here, by the name of the case and the measure. A bend without a reason is called one.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.suite.figures import number

KEPT = 0.75
REASONS: dict[str, str] = {}


def first_bend(points: Sequence[tuple[float, float]]) -> tuple[float, float, float] | None:
    """The first place that has too little, its share of the best before it, and that of the last place."""
    best = 0.0
    for place, value in points:
        if value < KEPT * best:
            return place, value / best, points[-1][1] / max(each for _, each in points)
        best = max(best, value)
    return None


def sentence(name: str, across: str, points: Sequence[tuple[float, float]]) -> str:
    """What the page says below a line of ours."""
    bend = first_bend(points)
    if bend is None:
        return REASONS.get(name, "")
    place, share, last = bend
    found = (
        f"Our line bends at {number(place)} {across}: {share:.0%} of the best before; at the end it is {last:.0%} of the best."
    )
    return f"{found} {REASONS.get(name, 'Why is not measured yet.')}"
