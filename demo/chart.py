"""The chart of the mean delay of departures against the wind, for each carrier, dry and in rain; from the results topic.

A window has the mean wind of its flights. Windows are grouped by wind in steps of 5 mph, and a point is drawn only if a group
has enough flights for a useful mean. The weather reports contain one wind of over 1,000 mph; windows with a wind above every
storm of that year are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

STEP_MPH = 5
HIGHEST_MPH = 40
FEWEST_DEPARTURES = 40
COLUMNS = 4
KINDS = {"dry": "#b5651d", "rain": "#1f5fa8"}


def by_wind(results: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """The departures and the minutes of delay by carrier, wind and kind (dry or rain)."""
    windows = pd.DataFrame(list(results)).drop_duplicates(["carrier", "window_start"])
    windows = windows[windows["with_wind"] > 0]
    mph = windows["wind_sum"] / windows["with_wind"] / 100
    windows = windows.assign(wind=np.floor(mph / STEP_MPH) * STEP_MPH + STEP_MPH / 2)[mph < HIGHEST_MPH]
    rain = windows.assign(kind="rain", count=windows["rain_departed"], minutes=windows["rain_dep_delay_sum"])
    dry = windows.assign(
        kind="dry",
        count=windows["departed"] - windows["rain_departed"],
        minutes=windows["dep_delay_sum"] - windows["rain_dep_delay_sum"],
    )
    both = pd.concat([dry, rain])
    return both.groupby(["carrier", "airline", "kind", "wind"], as_index=False)[["count", "minutes"]].sum()


def draw(results: Iterable[dict[str, Any]], path: Path) -> None:
    """Write the chart as PNG."""
    points = by_wind(results)
    carriers = points.groupby(["carrier", "airline"])["count"].sum().sort_values(ascending=False)
    rows = -(-len(carriers) // COLUMNS)
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(12, 2.3 * rows + 1.2), layout="constrained")
        axes = figure.subplots(rows, COLUMNS, sharex=True, sharey=True, squeeze=False)
        for number, (carrier, airline) in enumerate(carriers.index):
            _panel(axes[number // COLUMNS][number % COLUMNS], points[points["carrier"] == carrier], f"{airline} ({carrier})")
        for spare in axes.flat[len(carriers) :]:
            spare.set_visible(False)
        figure.legend(*_legend(axes[0][0]), loc="outside upper right", ncols=2, frameon=False)
        figure.suptitle("Delay of departures against wind, New York 2013", x=0.01, ha="left", fontsize=13)
        figure.supxlabel("mean wind in the window (mph)")
        figure.supylabel("mean delay of departures (minutes)")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)


def _panel(axes: Axes, points: pd.DataFrame, title: str) -> None:
    shown = points[points["count"] >= FEWEST_DEPARTURES]
    for kind, colour in KINDS.items():
        line = shown[shown["kind"] == kind].sort_values("wind")
        axes.plot(line["wind"], line["minutes"] / line["count"], "o-", color=colour, label=kind, markersize=4)
    axes.set_title(title, loc="left", fontsize=9)
    axes.set_xlim(0, HIGHEST_MPH)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    if shown.empty:
        axes.text(HIGHEST_MPH / 2, 0, "too few flights", ha="center", color="#888888")


def _legend(axes: Axes) -> tuple[list[Any], list[str]]:
    handles, labels = axes.get_legend_handles_labels()
    return list(handles), [{"dry": "dry hours", "rain": "hours with rain"}[str(label)] for label in labels]
