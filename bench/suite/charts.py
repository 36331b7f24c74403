"""Charts as SVG files: bars of one figure of several systems, and lines over a growing quantity. The code writes the SVG text
itself, since the charts are simple.

If the largest value is more than `LOG_FROM` times the smallest, the scale of bars is logarithmic, and the title says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from bench.figures import number

WIDTH, BAR, GAP, LEFT, TOP, RIGHT = 640, 20, 8, 150, 34, 96
LINE_HEIGHT, BOTTOM = 220, 40
# ratio from which the scale is logarithmic; decades below the smallest value, so that it has a visible bar
LOG_FROM, LOG_FLOOR = 30.0, 0.5
OURS_COLOUR, COLOURS = "#c2410c", ("#334155", "#2563eb", "#059669", "#7c3aed", "#b45309", "#64748b")
FONT = "font-family='sans-serif' font-size='12'"


def bars(title: str, unit: str, rows: Mapping[str, float], ours: str) -> str:
    """A chart with a horizontal bar for each row."""
    largest, smallest = max(rows.values()), min(value for value in rows.values() if value > 0)
    is_log = largest > LOG_FROM * smallest
    floor = math.log10(smallest) - LOG_FLOOR

    def length(value: float) -> float:
        if value <= 0:
            return 0.0
        share = (math.log10(value) - floor) / (math.log10(largest) - floor) if is_log else value / largest
        return share * (WIDTH - LEFT - RIGHT)

    parts = []
    for place, (name, value) in enumerate(rows.items()):
        y = TOP + place * (BAR + GAP)
        colour = OURS_COLOUR if name == ours else COLOURS[0]
        parts += [
            _text(LEFT - 8, y + 15, name, anchor="end"),
            f"<rect x='{LEFT}' y='{y}' width='{length(value):.1f}' height='{BAR}' fill='{colour}'/>",
            _text(LEFT + length(value) + 6, y + 15, number(value)),
        ]
    words = f"{title} ({unit}{', logarithmic' if is_log else ''})"
    return _svg(TOP + len(rows) * (BAR + GAP) + 6, [_text(8, 20, words, weight="bold"), *parts])


def lines(title: str, across: str, series: Mapping[str, Sequence[tuple[float, float]]], ours: str) -> str:
    """A chart with a line for each series. The vertical axis begins at zero; the horizontal one is logarithmic if it grows more
    than `LOG_FROM` times."""
    places = sorted({x for points in series.values() for x, _ in points})
    most_y = max(y for points in series.values() for _, y in points) or 1.0  # if all values are 0, the line is at the bottom
    width, height = WIDTH - LEFT - RIGHT, LINE_HEIGHT
    is_log = places[0] > 0 and places[-1] > LOG_FROM * places[0]

    def right(x: float) -> float:
        share = math.log(x / places[0]) / math.log(places[-1] / places[0]) if is_log else x / places[-1]
        return LEFT + share * width

    def down(y: float) -> float:
        return TOP + height - y / most_y * height

    parts = [
        f"<path d='M{LEFT},{TOP} V{TOP + height} H{LEFT + width}' fill='none' stroke='#94a3b8'/>",
        _text(LEFT - 8, TOP + 10, number(most_y), anchor="end"),
        _text(LEFT - 8, TOP + height, "0", anchor="end"),
        *(_text(right(place), TOP + height + 18, number(place), anchor="middle") for place in places),
        _text(LEFT + width / 2, TOP + height + 34, f"{across}{', logarithmic' if is_log else ''}", anchor="middle"),
    ]
    others = iter(COLOURS * (1 + len(series) // len(COLOURS)))
    for name, points in series.items():
        colour = OURS_COLOUR if name == ours else next(others)
        path = " ".join(f"{right(x):.1f},{down(y):.1f}" for x, y in points)
        parts.append(f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='2'/>")
        parts.append(_text(right(points[-1][0]) + 6, down(points[-1][1]) + 4, name, colour=colour))
    return _svg(TOP + height + BOTTOM, [_text(8, 20, title, weight="bold"), *parts])


def _svg(height: float, parts: Sequence[str]) -> str:
    head = f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{height:.0f}' viewBox='0 0 {WIDTH} {height:.0f}' {FONT}>"
    return "\n".join([head, f"<rect width='{WIDTH}' height='{height:.0f}' fill='#ffffff'/>", *parts, "</svg>"]) + "\n"


def _text(x: float, y: float, words: str, *, anchor: str = "start", weight: str = "normal", colour: str = "#0f172a") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-weight='{weight}' fill='{colour}'>{escape(words)}</text>"
