"""The part of `docs/performance.md` on the suite's results, and its charts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from bench.figures import median, number, ratio, spread, values
from bench.report import PAGE, table
from bench.suite import bends, charts
from bench.suite.case import Case
from bench.suite.measure import BARE, PLACE

CHARTS = PAGE.with_suffix("")  # the folder docs/performance/
LINE = 140
AHEAD = 2.0  # target against each other system, for measures without a target of their own
SHARE_OF_BARE, CONSUMING = 0.8, "consume"  # target share of bare sendfile; name prefix of the measures of consuming
OURS, KAFKA = "barnabas", "kafka"
Result = dict[str, Any]
Points = list[tuple[float, float]]
BESIDE = {
    "cpu": "CPU seconds of the system for a GB of values",
    "peak": "the most memory of the system meanwhile (MB)",
}  # figures of each point of a line, where less is better, and their titles
HEAD = """
# Beside other systems

`python -m bench run` starts every system on loopback with fresh data and loads one at a time, in each repetition and in turning order.

- **Other systems** are stopped by a signal meanwhile, so that they use no CPU, unless a case says that they were idle.
- **Cores** are shared by clients and systems. So CPU for a million messages and highest memory stand beside each rate.
- **Figures** are medians, with the smallest and the largest. *Times* says how many times better barnabas is: the median of the ratios of
  the pairs.
- **A dash** means that the system cannot do this, or, where it says so, that this suite cannot do it with the system.
- **Syncs**: no system syncs its files for each message.
- **Memory** for throughput was used just before: the host of this machine takes idle pages away and gives them back one by one
  (`bench/memory.py`).
- **Counts** are smaller than in the studies, so that a case takes about ten minutes and growth forty.
- **Other work** on the machine: each case says how much CPU it took. Rates are lower then.
"""


def render(results: Sequence[tuple[Case, Result]], folder: Path = CHARTS) -> str:
    """The text; writes the charts into `folder`."""
    if not results:
        return ""
    text = HEAD + _systems(results)
    for case, result in results:
        told = fill(result["text"], LINE)
        text += f"\n## {case.title}\n\n{told}\n\n{fill(_conditions(result), LINE, break_on_hyphens=False)}\n"
        text += "".join(_measure(case.name, each, result["peers"]) for each in result["measures"])
        text += _draw(case, result, folder)
    return text


def _systems(results: Sequence[tuple[Case, Result]]) -> str:
    known: dict[str, dict[str, Any]] = {}
    for _, result in results:
        known |= {key: peer for key, peer in result["peers"].items() if "version" in peer}
    rows = []
    for key, peer in known.items():
        first = [peer["name"], "see each case" if key == OURS else peer["version"]]
        for setting in peer["settings"]:
            told = f"`{setting['name']}`" + (f" = `{setting['value']}`" if setting["value"] else "")
            rows.append([*first, told, setting["why"]])
            first = ["", ""]
    return "\nSettings that differ from the defaults:\n\n" + table(["", "version", "setting", "reason and source"], rows)


def _conditions(result: Result) -> str:
    machine, options = result["machine"], result["options"]
    shares = [
        run["others_cpu"] for each in result["measures"] for runs in each["runs"].values() for run in runs if "others_cpu" in run
    ]
    busy = f" Other work took {median(shares):.0%} of the machine's CPU meanwhile (median)." if shares else ""
    beside = "" if result.get("is_alone") else " The other systems were up and idle meanwhile."
    absent = [f"{peer['name']}: {peer['unavailable']}" for peer in result["peers"].values() if "unavailable" in peer]
    return (
        f"`{result['command']}` on {result['date']}: {machine['processor']}, {machine['cores']} cores, {machine['memory']}, "
        f"{machine['kernel']}, Python {machine['python']}, Java {machine['java']}; {_commit(result)}a load ends after "
        f"{options['messages']:,} messages or {options['seconds']:g} s.{busy}{beside}"
        + "".join(f" Not measured: {each}." for each in absent)
    )


def _commit(result: Result) -> str:
    """The commit of a case's results, since cases are measured at different times."""
    ours = result["peers"].get(OURS, {})
    return f"{ours['name']}: {ours['version']}; " if "version" in ours else ""


def _repetitions(measure: Result) -> str:
    """The number of repetitions; for each system if they differ."""
    counts = sorted({len(runs) for key, runs in measure["runs"].items() if key != BARE})
    if not counts:
        return ""
    return f"\n{' or '.join(map(str, counts))} repetition{'s' if counts != [1] else ''}.\n"


def _measure(case: str, measure: Result, peers: Mapping[str, Any]) -> str:
    if measure["across"]:
        return _growing(case, measure, peers)
    rows = []
    bare = median(values(measure, BARE))
    extra = [name for name in ("p50", "p99.9", "max") if any(values(measure, key, name) for key in measure["runs"])]
    for key in [*measure["runs"], *measure["dashes"]]:
        if key == BARE:
            continue
        name = peers[key]["name"]
        if key in measure["dashes"]:
            rows.append([name, "-", *("" for _ in extra), "", "", "", measure["dashes"][key]])
            continue
        times = ratio(measure, OURS, key) if key != OURS else None
        rows.append(
            [
                name,
                spread(values(measure, key)),
                *(spread(values(measure, key, figure)) for figure in extra),
                _or_blank(median(values(measure, key, "cpu_s_per_million"))),
                _or_blank(median(values(measure, key, "peak_mb"))),
                "" if times is None else f"{times:.2f}x",
                " ".join(filter(None, (_beside_bare(measure, key), _verdict(measure, key)))),
            ]
        )
    if bare is not None:
        spent = _or_blank(median(values(measure, BARE, "cpu_s_per_million")))
        peak = _or_blank(median(values(measure, BARE, "peak_mb")))
        also = [spread(found) if (found := values(measure, BARE, figure)) else "" for figure in extra]
        rows.append([_bare_name(measure), spread(values(measure, BARE)), *also, spent, peak, "", ""])
    head = ["", measure["unit"], *extra, "CPU s per million", "peak MB", "times", ""]
    return (
        f"\n### {measure['title'][0].upper()}{measure['title'][1:]}\n{_repetitions(measure)}\n"
        + table(head, rows)
        + _target(measure, peers)
    )


def _growing(case: str, measure: Result, peers: Mapping[str, Any]) -> str:
    """The text of a growing measure, with a table of the places of its line. Without the table if systems have other places
    than the longest line: then only the chart shows them."""
    series = _points(measure, peers)
    text = f"\n### {measure['title'][0].upper()}{measure['title'][1:]}\n{_repetitions(measure)}"
    places = [place for place, _ in max(series.values(), key=len, default=[])]
    if all(place in places for points in series.values() for place, _ in points):
        dashes = [[peers[key]["name"], *("-" for _ in places), reason] for key, reason in measure["dashes"].items()]
        ends = {peers[key]["name"]: reason for key, reason in measure.get("ends", {}).items()}
        text += "\n" + _places(measure["across"], places, series, dashes, ends)
    ours, less_is_better = _ours(series, peers), not measure["higher_is_better"]
    text += _short_of(measure["across"], ours, series, less_is_better=less_is_better)
    text += _bend(f"{case}/{measure['name']}", measure["across"], ours, less_is_better=less_is_better)
    for kind, title in BESIDE.items():
        beside = {name: points for name, points in _points(measure, peers, kind).items() if points}
        if beside:
            there = [place for place, _ in max(beside.values(), key=len)]
            text += f"\n{title[0].upper()}{title[1:]}:\n\n" + _places(measure["across"], there, beside, [], {})
            text += _bend(f"{case}/{measure['name']}/{kind}", measure["across"], _ours(beside, peers), less_is_better=True)
    return text


def _ours(series: Mapping[str, Points], peers: Mapping[str, Any]) -> Points:
    return series.get(peers[OURS]["name"], []) if OURS in peers else []


def _bend(name: str, across: str, points: Points, *, less_is_better: bool = False) -> str:
    said = bends.sentence(name, across, points, less_is_better=less_is_better)
    return f"\n{fill(said, LINE)}\n" if said else ""


def _short_of(across: str, ours: Points, series: Mapping[str, Points], *, less_is_better: bool) -> str:
    """The places where another system's line is closer to ours than wanted, and where it is ahead, by the medians in the
    table."""
    at = dict(ours)

    def within(times: float) -> str:
        found = {
            name: [number(place) for place, value in points if place in at and _times(at[place], value, less_is_better) < times]
            for name, points in series.items()
            if points is not ours
        }
        return "; ".join(f"{name} at {', '.join(places)}" for name, places in found.items() if places)

    short, lost = within(AHEAD), within(1.0)
    said = f"We are less than {AHEAD:g} times better ({across}) than: {short}." if short else ""
    if lost:
        said += f" We lose to {lost}."
    return f"\n{fill(said, LINE)}\n" if said else ""


def _times(ours: float, other: float, less_is_better: bool) -> float:
    return other / ours if less_is_better else ours / other


def _places(
    across: str, places: Sequence[float], series: Mapping[str, Points], more: Sequence[list[str]], ends: Mapping[str, str]
) -> str:
    rows = [
        [name, *(_or_dash(dict(points).get(place)) for place in places), ends.get(name, "")] for name, points in series.items()
    ]
    return table([across, *(number(place) for place in places), ""], [*rows, *more])


def _or_dash(value: float | None) -> str:
    return "-" if value is None else number(value)


def _or_blank(value: float | None) -> str:
    return "" if value is None else number(value)


def _beside_bare(measure: Result, key: str) -> str:
    """The share of the limit that a system reaches; for a cost, the multiple of the limit."""
    value, bare = median(values(measure, key)), median(values(measure, BARE))
    if value is None or not bare:
        return ""
    return f"{value / bare:.0%} of bare" if measure["higher_is_better"] else f"{value / bare:.2f} times bare"


def _bare_name(measure: Result) -> str:
    return str(measure.get("bare_name", "bare system calls"))


def _verdict(measure: Result, key: str) -> str:
    if key in (OURS, BARE):
        return ""
    times = ratio(measure, OURS, key)
    return "**we lose**" if times is not None and times < 1 else ""


def _target(measure: Result, peers: Mapping[str, Any]) -> str:
    """A sentence that says whether the target is met."""
    said: list[str] = []
    times, ours = ratio(measure, OURS, KAFKA), median(values(measure, OURS))
    if measure["target"] is not None and times is not None:
        said.append(f"Target: {measure['target']:g} times Apache Kafka: {'yes' if times >= measure['target'] else '**no**'}.")
    if measure["limit"] is not None and ours is not None:
        said.append(f"Target: under {measure['limit']:g} {measure['unit']}: {'yes' if ours < measure['limit'] else '**no**'}.")
    bare = median(values(measure, BARE))
    if measure["name"].startswith(CONSUMING) and bare and ours is not None:
        said.append(f"Target: {SHARE_OF_BARE:.0%} of bare sendfile: {'yes' if ours >= SHARE_OF_BARE * bare else '**no**'}.")
    short = [f"{peers[key]['name']} ({found:.2f})" for key, found in _ratios(measure) if key != KAFKA and found < AHEAD]
    if short:
        said.append(f"We are less than {AHEAD:g} times better than: {', '.join(short)}.")
        said += _unreachable(measure, peers)
    lost = [peers[key]["name"] for key in measure["runs"] if _verdict(measure, key)]
    if lost:
        said.append(f"We lose to {', '.join(lost)} here.")
    return f"\n{fill(' '.join(said), LINE)}\n" if said else ""


def _unreachable(measure: Result, peers: Mapping[str, Any]) -> Iterator[str]:
    """The systems for which even the bare loop does not reach the wanted factor."""
    found = [(key, ratio(measure, BARE, key)) for key, times in _ratios(measure) if key != KAFKA and times < AHEAD]
    near = [f"{peers[key]['name']} ({times:.2f})" for key, times in found if times is not None and times < AHEAD]
    if near:
        yield f"Even the {_bare_name(measure)} would be less than {AHEAD:g} times better than: {', '.join(near)}."


def _ratios(measure: Result) -> list[tuple[str, float]]:
    """The ratios of barnabas to each other system: how many times better it is."""
    found = [(key, ratio(measure, OURS, key)) for key in measure["runs"] if key not in (OURS, BARE)]
    return [(key, times) for key, times in found if times is not None]


def _draw(case: Case, result: Result, folder: Path) -> str:
    """Write the charts of a case as files; returns the lines of the page that show them."""
    folder.mkdir(parents=True, exist_ok=True)
    made: list[tuple[str, str, str]] = []  # name, title and chart
    ours = result["peers"][OURS]["name"]
    for measure in result["measures"]:
        if measure["name"] in case.charts:
            found = {peer["name"]: median(values(measure, key)) for key, peer in result["peers"].items()}
            rows = {name: value for name, value in found.items() if value is not None and value > 0}
            if rows:
                made.append((measure["name"], measure["title"], charts.bars(measure["title"], measure["unit"], rows, ours)))
        elif measure["across"]:
            made += _lines(measure, result["peers"], ours)
    text = ""
    for name, title, chart in made:
        path = folder / f"{case.name}-{name}.svg"
        path.write_text(chart)
        text += f"\n![{title}]({folder.name}/{path.name})\n"
    return text


def _lines(measure: Result, peers: Mapping[str, Any], ours: str) -> Iterator[tuple[str, str, str]]:
    """The chart of a growing measure, and the charts of its other figures."""
    series = {name: points for name, points in _points(measure, peers).items() if points}
    if series:
        yield measure["name"], measure["title"], charts.lines(measure["title"], measure["across"], series, ours)
    for kind, title in BESIDE.items():
        beside = {name: points for name, points in _points(measure, peers, kind).items() if points}
        if beside:
            whole = f"{title} against {measure['across']}"
            yield f"{measure['name']}-{kind}", whole, charts.lines(whole, measure["across"], beside, ours)


def _points(measure: Result, peers: Mapping[str, Any], kind: str = "at") -> dict[str, Points]:
    """The lines of a growing measure, by the names of the systems."""
    series = {}
    for key, runs in measure["runs"].items():
        numbers = {name: found[1] for run in runs for name in run if (found := re.fullmatch(rf"{kind}_(\d+)", name))}
        names = {name: median(values(measure, key, f"{PLACE}_{number}")) or float(number) for name, number in numbers.items()}
        series[peers[key]["name"]] = [
            (place, median(values(measure, key, name)) or 0.0) for name, place in sorted(names.items(), key=lambda each: each[1])
        ]
    return series
