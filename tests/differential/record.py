"""Record Apache Kafka's answers: `python -m tests.differential.record` (`make differential`).

Runs the script against two fresh nodes and refuses to write what differs between them: a step that is not deterministic proves
nothing. Then says what changed against the golden files, and writes them. With `--bootstrap` the script runs against any broker
and only the differences are shown.
"""

from __future__ import annotations

import argparse
import sys
import time

from tools.kafka import KafkaNode

from tests.differential.compare import ABSENT, Known, Recording, differences
from tests.differential.known import KNOWN, PAGE, page_with
from tests.differential.runner import CONFIG, GOLDEN, load, run, save, scenarios
from tests.differential.talk import Address
from tests.retention import NO_RETENTION_CHECKS

Recordings = dict[str, dict[str, Recording]]


def record(bootstrap: str, only: str) -> Recordings:
    """Module -> scenario -> recording, of those whose name holds `only`."""
    address = Address.of(bootstrap)
    result: Recordings = {}
    for module, own in scenarios().items():
        for name, scenario in own.items():
            if only in name or only == module:
                began = time.monotonic()
                result.setdefault(module, {})[name] = recording = run(scenario, name, address)
                print(f"{module}: {name}: {len(recording)} steps in {time.monotonic() - began:.2f} s", flush=True)
    return result


def report(expected: Recordings, found: Recordings, known: list[Known]) -> int:
    """Print what differs; the number of differences that no entry of `known` covers."""
    count = 0
    for module, own in found.items():
        for name, recording in own.items():
            entries = [entry for entry in known if entry.scenario == name]
            for difference in differences(expected.get(module, {}).get(name, {}), recording):
                is_new = difference.kafka == ABSENT and not difference.path
                if not is_new and not any(entry.covers(difference) for entry in entries):
                    count += 1
                    print(f"{name}: {str(difference)[:300]}")
    return count


def write_page() -> None:
    """Put the table of known differences into the page."""
    PAGE.write_text(page_with(PAGE.read_text()))


def main() -> int:
    """0 when the golden files hold what was found, or were written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", help="compare this broker with the golden files instead of recording Kafka")
    parser.add_argument("--only", default="", help="scenarios whose name holds this, or the name of a module; nothing is written")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where Kafka differs from the golden files")
    parser.add_argument(
        "--page", action="store_true", help="only write the table of known differences into docs/compatibility.md"
    )
    options = parser.parse_args()
    if options.page:
        write_page()
        return 0
    golden = {module: load(module) for module in scenarios() if (GOLDEN / f"{module}.json").exists()}
    if options.bootstrap:
        return 1 if report(golden, record(options.bootstrap, options.only), KNOWN) else 0
    runs = []
    for _ in range(2):
        with KafkaNode(config=CONFIG | NO_RETENTION_CHECKS) as node:
            runs.append(record(node.bootstrap, options.only))
    if report(runs[0], runs[1], []):
        print("Two runs against Kafka differ: nothing is written.", file=sys.stderr)
        return 1
    changed = report(golden, runs[0], []) if golden else 0
    if options.check or options.only:
        return 1 if changed else 0
    for module, recordings in runs[0].items():
        save(module, recordings)
    write_page()
    print(f"{sum(len(r) for own in runs[0].values() for r in own.values())} steps recorded, {changed} fields changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
