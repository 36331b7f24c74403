"""The chart is drawn from windows as they stand in the results topic."""

from __future__ import annotations

from pathlib import Path

from demo.chart import by_wind, draw
from demo.data import Slice
from demo.verify import expected_windows


def test_the_points_hold_every_departure_with_a_plausible_wind(tmp_path: Path) -> None:
    windows = expected_windows(Slice(10))
    results = [{"carrier": carrier, "window_start": start, **figures} for (carrier, start), figures in windows.items()]
    points = by_wind(results)
    departed = sum(figures["departed"] for figures in windows.values() if figures["with_wind"])
    assert points["count"].sum() == departed
    draw(results, tmp_path / "delays.png")
    assert (tmp_path / "delays.png").read_bytes().startswith(b"\x89PNG")
