"""Results as JSON, `bench/results/<case>.json` for each case: the machine, versions, settings, the command, and every repetition."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.peers.peer import Peer
from bench.report import describe_machine
from bench.suite.measure import Measured, Options

FOLDER = Path(__file__).resolve().parents[1] / "results"
Result = dict[str, Any]


def describe_peer(peer: Peer) -> dict[str, Any]:
    return {"name": peer.name, "version": peer.version, "settings": [asdict(setting) for setting in peer.settings]}


def describe(
    case: str, *, text: str, command: str, options: Options, peers: Mapping[str, dict[str, Any]], measured: Sequence[Measured]
) -> Result:
    """All results of a case, with the `text` on its method. `peers` has the result of `describe_peer` for each system, or the
    reason why it is missing ("unavailable")."""
    return {
        "case": case,
        "text": text,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
        "is_alone": True,  # no other measured system ran at the same time
        "machine": describe_machine(),
        "options": told(options),
        "peers": dict(peers),
        "measures": [shown for each in measured for shown in each.as_json()],
    }


def told(options: Options) -> dict[str, Any]:
    """The amounts of a measurement, in the form that JSON returns."""
    return {key: list(each) if isinstance(each, tuple) else each for key, each in asdict(options).items()}


def write(result: Result, folder: Path = FOLDER) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['case']}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def merged(before: Result, part: Result) -> Result:
    """All results of a case, after some of its measures were repeated with the same options.

    Raises:
        ValueError: `before` was measured with other options, or lacks a measure of `part`.
    """
    anew = {each["name"]: each for each in part["measures"]}
    if before["options"] != part["options"] or anew.keys() - {each["name"] for each in before["measures"]}:
        raise ValueError(f"the results of {part['case']} that are there were measured in another way: measure all of it")
    return {**part, "measures": [anew.get(each["name"], each) for each in before["measures"]]}


def read(case: str, folder: Path = FOLDER) -> Result | None:
    path = folder / f"{case}.json"
    return dict(json.loads(path.read_text())) if path.exists() else None
