"""Computes figures from repetitions: medians with their spread, and ratios pair by pair.

The repetitions of one round are close in time, so other work on the machine usually disturbs both of a pair. A ratio says how
many times better the first one is. So a ratio above 1 is always a win, also for figures of which less is better.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

Measured = dict[str, Any]


def values(measured: Measured, peer: str, figure: str = "value") -> list[float]:
    """The figure in each repetition of a system; empty if the system has no such figure."""
    return [run[figure] for run in measured["runs"].get(peer, []) if figure in run]


def median(numbers: Sequence[float]) -> float | None:
    return statistics.median(numbers) if numbers else None


def ratio(
    measured: Measured, first: str, second: str, figure: str = "value", *, higher_is_better: bool | None = None
) -> float | None:
    """The median of the ratios of the pairs; None if one of the two has no figures."""
    better_up = measured["higher_is_better"] if higher_is_better is None else higher_is_better
    pairs = list(zip(values(measured, first, figure), values(measured, second, figure), strict=False))
    if better_up:
        pairs = [(b, a) for a, b in pairs]
    return median([b / a for a, b in pairs if a > 0])


def number(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(numbers: Sequence[float]) -> str:
    """The median with the smallest and the largest number; a dash if there are no numbers."""
    if not numbers:
        return "-"
    low, middle, high = (number(value) for value in (min(numbers), statistics.median(numbers), max(numbers)))
    return f"{middle} ({low} to {high})" if len(numbers) > 1 else middle
