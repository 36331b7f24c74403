"""The tables of `docs/scale.md`, from the results of `python -m bench.scale` and `python -m bench.cluster`."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from barnabas.cluster.membership.failure_detector import FailureDetector
from barnabas.config.broker import BrokerConfig
from barnabas.server.cluster.liveness_prober import ASKED_IN_A_HEARTBEAT
from bench.report import OURS, table

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "scale.md"
CLUSTER = ROOT / "bench" / "results" / "cluster.json"
FETCH_WAIT_S = 0.5  # replica.fetch.wait.max.ms: how long the fetch request of an idle follower waits

BLOCK = "<!-- measured: {name} -->\n", "<!-- end of {name} -->\n"


def write_page(results: dict[str, Any]) -> None:
    """Write the tables into docs/scale.md, each between its marks."""
    sizes, machine = results["sizes"], results["machine"]
    blocks = {
        "machine": f"Machine: {machine['processor']}, Python {machine['python']}, {results['date']}.\n",
        "all the time": _all_the_time(sizes, results["idle_fetch_s"]),
        "stored": _stored(sizes),
        "works": _works(sizes),
        "groups": _groups(results["groups"]),
        "here": _measured_here(),
    }
    text = PAGE.read_text()
    for name, block in blocks.items():
        begin, end = (mark.format(name=name) for mark in BLOCK)
        before, found, rest = text.partition(begin)
        _, found_end, after = rest.partition(end)
        if not (found and found_end):
            raise ValueError(f"{PAGE} has no place for {name}")
        text = before + begin + block + end + after
    PAGE.write_text(text)


def _head(first: str, sizes: list[dict[str, Any]]) -> list[str]:
    return [first, *(f"{s['brokers']} brokers, {s['partitions']:,} partitions in topics of {s['per_topic']}" for s in sizes), ""]


def _rows(sizes: list[dict[str, Any]], rows: dict[str, Any]) -> str:
    return table(_head("", sizes), [[name, *(show(size) for size in sizes), ""] for name, show in rows.items()])


def _all_the_time(sizes: list[dict[str, Any]], idle_fetch_s: float) -> str:
    def requests(size: dict[str, Any]) -> float:
        others: int = size["brokers"] - 1
        return others / FETCH_WAIT_S

    def signs(size: dict[str, Any]) -> float:
        others: int = size["brokers"] - 1
        return others * 1000 / _asking(size).interval_ms

    return _rows(
        sizes,
        {
            "replicas on each broker": lambda s: f"{3 * s['partitions'] // s['brokers']:,}",
            "fetch requests that each broker sends while idle, a second": lambda s: f"{requests(s):,.0f}",
            "liveness requests that each broker sends, a second": lambda s: f"{signs(s):,.0f}",
            "CPU of a broker for the fetches it sends and answers (% of a core)": lambda s: (
                f"{requests(s) * idle_fetch_s * 100:.1f}"
            ),
            "answer to Metadata for all topics (MB)": lambda s: f"{s['metadata_bytes'] / 1e6:.2f}",
            "memory of the metadata in each broker (MB)": lambda s: f"{s['image_bytes'] / 1e6:.1f}",
        },
    )


def _asking(size: dict[str, Any]) -> FailureDetector:
    """The failure detector of a broker in such a cluster, with the defaults."""
    config, _ = BrokerConfig.from_properties({})
    silence = FailureDetector(config.broker_heartbeat_interval_ms / ASKED_IN_A_HEARTBEAT, config.metadata_session_timeout_ms)
    silence.changed(size["brokers"], 3 * size["partitions"] // size["brokers"])
    return silence


def _stored(sizes: list[dict[str, Any]]) -> str:
    return _rows(
        sizes,
        {
            "entries": lambda s: f"{sum(entries for entries, _ in s['stored'].values()):,}",
            "bytes of partitions (kB)": lambda s: f"{s['stored']['partitions'][1] / 1e3:,.0f}",
            "bytes of topics (kB)": lambda s: f"{s['stored']['topics'][1] / 1e3:,.0f}",
            "bytes of brokers (kB)": lambda s: f"{s['stored']['brokers'][1] / 1e3:,.1f}",
        },
    )


def _works(sizes: list[dict[str, Any]]) -> str:
    rows: dict[str, Any] = {}
    for key, title in (("create", "created"), ("lost", "lost"), ("rejoined", "back")):
        rows[f"{title}: controller (s)"] = lambda s, key=key: f"{s['works'][key]['controller_s']:.2f}"
        rows[f"{title}: commits, and MB written"] = lambda s, key=key: (
            f"{s['works'][key]['commits']:,}, {s['works'][key]['written'] / 1e6:.1f}"
        )
        rows[f"{title}: each other broker (s)"] = lambda s, key=key: f"{s['works'][key]['follower_s']:.2f}"
        rows[f"{title}: read by all of them (MB)"] = lambda s, key=key: (
            f"{s['works'][key]['read'] * (s['brokers'] - 1) / 1e6:,.0f}"
        )
    rows["taken over (s)"] = lambda s: f"{s['take_over_s']:.2f}"
    rows["checked everything, nothing to do (s)"] = lambda s: f"{s['idle_look_s']:.3f}"
    return _rows(sizes, rows)


def _groups(groups: dict[str, Any]) -> str:
    count = groups["groups"]
    rows = [
        ["bytes in the log", f"{groups['log_bytes'] / count / 1e3:.1f} kB", ""],
        ["bytes in memory", f"{groups['resident_bytes'] / count / 1e3:.1f} kB", ""],
        ["CPU to load it when the leader changes", f"{groups['load_s'] / count * 1e3:.2f} ms", ""],
        ["CPU of a heartbeat in the core", f"{groups['heartbeat_s'] * 1e6:.1f} us", ""],
    ]
    title = f"a group of {groups['members']} members with {groups['offsets']} committed offsets"
    return table([title, "", ""], rows)


def _measured_here() -> str:
    cases = {case["name"]: case for case in json.loads(CLUSTER.read_text())["cases"] if case["name"].startswith("many-")}
    rows = []
    for case in cases.values():
        values = [run[case["figure"]] for run in case["runs"][OURS]]
        rows.append([f"{case['title']} ({case['unit']})", f"{statistics.median(values):.3g}", ""])
    return table(["three brokers, 1,000 partitions with three replicas each", "", ""], rows)
