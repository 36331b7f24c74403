"""Draw the diagrams of the documentation as SVG files, each for light and for dark pages; `--check` exits 1 if one is out of
date.

Owns `docs/images/NAME-light.svg` and `docs/images/NAME-dark.svg` of each diagram in `DIAGRAMS`.

Rules
  1. A diagram is a function that puts shapes on a `Canvas`. It names colours by their role (`Theme`), never by value.
  2. Files need no script and no external font, so that they work in a repository, on the site and offline.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

IMAGES = Path(__file__).resolve().parent.parent / "docs/images"
WIDTH = 740  # width of the site's text column, so that the site shows letters at their original size
FONT = "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif"
TITLE, TEXT, SMALL = 14, 12.5, 11.5
LINE_HEIGHT = 16


class Theme(NamedTuple):
    """The colours by role."""

    ink: str
    muted: str
    line: str
    box: str
    edge: str
    accent: str
    accent_box: str


THEMES = {
    "light": Theme("#1f2933", "#52606d", "#7b8794", "#f5f7fa", "#cbd2d9", "#c2410c", "#fff4ec"),
    "dark": Theme("#e6edf3", "#a3b0bd", "#8b98a5", "#1d2229", "#434c56", "#fb923c", "#33200f"),
}


class Canvas:
    """Collects the shapes of one diagram in the colours of one theme."""

    def __init__(self, height: int, title: str, theme: Theme) -> None:
        self.theme = theme
        self._height = height
        self._title = title
        self._shapes: list[str] = []

    def box(
        self, x: float, y: float, width: float, height: float, *lines: str, accent: bool = False, dashed: bool = False
    ) -> None:
        """A rounded box; the first line is its title, the others are in small letters; all are centred."""
        fill, edge = (self.theme.accent_box, self.theme.accent) if accent else (self.theme.box, self.theme.edge)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self._shapes.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" stroke="{edge}" stroke-width="1.2"{dash}/>'
        )
        top = y + height / 2 - (len(lines) - 1) * LINE_HEIGHT / 2 + 4.5
        for number, line in enumerate(lines):
            self.text(x + width / 2, top + number * LINE_HEIGHT, line, anchor="middle", bold=number == 0, muted=number > 0)

    def text(self, x: float, y: float, words: str, *, anchor: str = "start", bold: bool = False, muted: bool = False) -> None:
        """One line of text; `y` is its base line."""
        size, weight = (TITLE, "600") if bold else (TEXT, "400")
        colour = self.theme.muted if muted else self.theme.ink
        self._shapes.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" fill="{colour}">'
            f"{escape(words)}</text>"
        )

    def number(self, x: float, y: float, number: int) -> None:
        """A step's number in a filled circle around (`x`, `y`)."""
        self._shapes.append(f'<circle cx="{x}" cy="{y}" r="10" fill="{self.theme.accent}"/>')
        self._shapes.append(
            f'<text x="{x}" y="{y + 4}" text-anchor="middle" font-size="{SMALL}" font-weight="700" '
            f'fill="{self.theme.accent_box}">{number}</text>'
        )

    def arrow(self, *points: tuple[float, float], accent: bool = False, dashed: bool = False, both: bool = False) -> None:
        """A line along `points` with a head at its end, or at both ends."""
        colour = self.theme.accent if accent else self.theme.line
        ends = f' marker-end="url(#{"accent" if accent else "plain"})"' + (' marker-start="url(#start)"' if both else "")
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        self._shapes.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}{ends}/>')

    def rule(self, x: float, top: float, bottom: float) -> None:
        """A thin vertical line."""
        self._shapes.append(f'<path d="M{x} {top} V{bottom}" stroke="{self.theme.edge}" stroke-width="1.2"/>')

    def svg(self) -> str:
        """The file."""
        heads = "".join(
            f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="{way}">'
            f'<path d="M0 0 L10 5 L0 10 z" fill="{colour}"/></marker>'
            for name, colour, way in (
                ("plain", self.theme.line, "auto"),
                ("start", self.theme.line, "auto-start-reverse"),
                ("accent", self.theme.accent, "auto"),
            )
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self._height}" viewBox="0 0 {WIDTH} {self._height}" '
            f'role="img" font-family="{FONT}">\n<title>{escape(self._title)}</title>\n<defs>{heads}</defs>\n'
            + "\n".join(self._shapes)
            + "\n</svg>\n"
        )


def parts(theme: Theme) -> str:
    """The broker among the programs that use it."""
    canvas = Canvas(392, "The parts of barnabas", theme)
    outside = [
        ("Kafka clients", "Java, Python, C, Go, JavaScript"),
        ("Command line", "barnabas, Kafka's tools, kcat"),
        ("Tests", "pytest fixture: kafka"),
    ]
    for place, lines in enumerate(outside):
        y = 34 + place * 84
        canvas.box(1, y, 192, 58, *lines)
        canvas.arrow((194, y + 29), (291, y + 29), both=True)
        canvas.text(242, y + 22, "Kafka protocol", anchor="middle", muted=True)
    for shift in (16, 8):
        canvas.box(293 + shift, 8 + shift, 192, 252, accent=True)
    canvas.box(293, 8, 192, 252, accent=True)
    canvas.text(389, 32, "barnabas broker", anchor="middle", bold=True)
    canvas.text(389, 49, "one process, one core", anchor="middle", muted=True)
    for place, line in enumerate(("topics and partitions", "consumer groups", "transactions", "access rights and quotas")):
        canvas.box(305, 62 + place * 48, 168, 38)
        canvas.text(389, 85.5 + place * 48, line, anchor="middle")
    canvas.box(594, 34, 145, 92, "Apache Spark", "PySpark pipelines", 'format("barnabas")')
    canvas.arrow((502, 62), (592, 62))
    canvas.text(547, 55, "read", anchor="middle", muted=True)
    canvas.arrow((592, 100), (503, 100))
    canvas.text(547, 117, "write,", anchor="middle", muted=True)
    canvas.text(547, 132, "exactly once", anchor="middle", muted=True)
    canvas.box(594, 140, 145, 58, "Services", "schema registry, SQL")
    canvas.arrow((592, 169), (503, 169), both=True)
    canvas.text(547, 162, "Kafka protocol", anchor="middle", muted=True)
    canvas.box(594, 212, 145, 58, "Prometheus", "metrics, health")
    canvas.arrow((592, 241), (503, 241))
    canvas.text(547, 234, "HTTP", anchor="middle", muted=True)
    canvas.box(198, 322, 192, 60, "Logs on disk", "Kafka's file format")
    canvas.box(404, 322, 192, 60, "Metadata", "SQLite; cluster: ZooKeeper")
    canvas.arrow((345, 277), (345, 320), both=True)
    canvas.arrow((448, 277), (448, 320), both=True)
    return canvas.svg()


def path_of_a_record(theme: Theme) -> str:
    """Produce, the log, and Fetch."""
    canvas = Canvas(330, "The path of a record", theme)
    canvas.box(118, 8, 482, 314, dashed=True)
    canvas.text(134, 30, "broker: one process, one event loop", muted=True)
    canvas.box(1, 66, 92, 56, "Producer")
    canvas.box(1, 208, 92, 56, "Consumer")
    above = (("receive", "into one buffer"), ("dispatch", "rights, quotas"), ("check", "CRC, records"), ("append", "one write"))
    below = (("receive", "into one buffer"), ("dispatch", "rights, quotas"), ("find", "the offset"), ("send", "bytes as stored"))
    for place, (top, bottom) in enumerate(zip(above, below, strict=True)):
        x = 134 + place * 115
        canvas.box(x, 60, 102, 68, *top, accent=True)
        canvas.box(x, 202, 102, 68, *bottom, accent=True)
        if place:
            canvas.arrow((x - 12, 94), (x - 1, 94))
            canvas.arrow((x - 12, 236), (x - 1, 236))
        for y, step in ((60, place + 1), (202, place + 1)):
            canvas.number(x + 4, y, step)
    canvas.arrow((93, 86), (132, 86))
    canvas.arrow((93, 228), (132, 228))
    canvas.text(47, 58, "Produce", anchor="middle", muted=True)
    canvas.text(47, 200, "Fetch", anchor="middle", muted=True)
    for place, offset in enumerate(("0", "50", "100", "150")):
        canvas.box(640, 70 + place * 48, 98, 42)
        canvas.text(689, 95.5 + place * 48, f"batch at {offset}", anchor="middle")
    canvas.text(689, 56, "segment file", anchor="middle", bold=True)
    canvas.arrow((581, 94), (638, 94), accent=True)
    canvas.arrow((638, 236), (581, 236), accent=True)
    canvas.arrow((530, 130), (530, 160), (47, 160), (47, 124), dashed=True)
    canvas.text(330, 154, "acknowledge; with acks=all when followers have the batch", anchor="middle", muted=True)
    canvas.arrow((530, 272), (530, 300), (47, 300), (47, 266), accent=True)
    canvas.text(330, 294, "the bytes that the producer sent", anchor="middle", muted=True)
    return canvas.svg()


def cluster(theme: Theme) -> str:
    """Three brokers with their leaders and followers, and ZooKeeper."""
    canvas = Canvas(386, "A cluster", theme)
    canvas.box(150, 4, 440, 42, "Producers and consumers")
    for place in range(3):
        x = 1 + place * 254
        canvas.box(x, 92, 230, 186, dashed=True)
        canvas.text(x + 14, 116, f"Broker {place + 1}", bold=True)
        if place == 1:
            canvas.box(x + 112, 100, 104, 24, accent=True)
            canvas.text(x + 164, 116.5, "controller", anchor="middle")
        for partition in range(3):
            leads = partition == place
            canvas.box(x + 14, 132 + partition * 46, 202, 38, accent=leads)
            words = f"partition {partition}: {'leader' if leads else 'follower'}"
            canvas.text(x + 115, 155.5 + partition * 46, words, anchor="middle", muted=not leads)
        canvas.arrow((200 + place * 170, 48), (x + 115, 90), both=True)
        canvas.arrow((x + 115, 280), (x + 115, 316), both=True)
    canvas.arrow((269, 151), (219, 151), accent=True)
    canvas.arrow((217, 197), (267, 197), accent=True)
    canvas.arrow((523, 197), (473, 197), accent=True)
    canvas.arrow((471, 243), (521, 243), accent=True)
    canvas.box(
        1, 320, 738, 58, "ZooKeeper, three servers", "metadata: topics, settings, leaders, in-sync replicas, the controller"
    )
    return canvas.svg()


def exactly_once(theme: Theme) -> str:
    """A micro-batch from the tasks to the checkpoint, over time from top to bottom."""
    canvas = Canvas(404, "Exactly once with Spark", theme)
    lanes = ((1, 150, "Spark driver"), (240, 190, "Tasks on executors"), (522, 217, "Brokers"))
    for x, width, name in lanes:
        canvas.box(x, 4, width, 40, name, accent=name == "Brokers")
        canvas.rule(x + width / 2, 44, 388 if name == "Spark driver" else 400)
    driver, tasks, brokers = (x + width / 2 for x, width, _ in lanes)
    steps: Sequence[tuple[int, float, float, float, str, str, bool]] = (
        (0, 78, driver, tasks, "start the tasks", "", False),
        (1, 122, tasks, brokers, "rows, in open transactions", "not visible to read_committed", False),
        (0, 172, tasks, driver, "all tasks are done: prepared", "", False),
        (2, 222, driver, brokers, "one record in _barnabas_sinks", "this is the decision", True),
        (3, 282, driver, brokers, "commit the transactions", "now the rows are visible", False),
    )
    for number, y, start, end, words, below, accent in steps:
        way = 6 if end > start else -6
        canvas.arrow((start, y), (end - way / 3, y), accent=accent)
        middle = (start + end) / 2 if abs(end - start) < 400 else (tasks + brokers) / 2
        canvas.text(middle + (8 if number else 0), y - 8, words, anchor="middle", bold=accent)
        if below:
            canvas.text(middle + 8, y + 17, below, anchor="middle", muted=True)
        if number:
            canvas.number(start, y, number)
    canvas.box(1, 330, 150, 58, "checkpoint", "the batch is done")
    canvas.number(driver, 330, 4)
    return canvas.svg()


DIAGRAMS: dict[str, Callable[[Theme], str]] = {
    "parts": parts,
    "path-of-a-record": path_of_a_record,
    "cluster": cluster,
    "exactly-once": exactly_once,
}


def files() -> dict[Path, str]:
    """Every file with its content."""
    return {IMAGES / f"{name}-{kind}.svg": draw(theme) for name, draw in DIAGRAMS.items() for kind, theme in THEMES.items()}


def main(arguments: Sequence[str]) -> int:
    stale = [path for path, text in files().items() if not path.exists() or path.read_text() != text]
    if "--check" in arguments:
        for path in stale:
            print(f"stale: {path.relative_to(IMAGES.parent.parent)}; run tools/diagrams.py")
        return 1 if stale else 0
    IMAGES.mkdir(parents=True, exist_ok=True)
    for path in stale:
        path.write_text(files()[path])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
