"""Record Apache Kafka 3.9's answers in the versions that Kafka 4 dropped: `python -m tests.differential.dropped.record`.

As `tests.differential.record`: two runs must agree, then the golden files are written. `--check` writes nothing.
"""

from __future__ import annotations

import argparse
import sys
import time

from tools.kafka import free_ports
from tools.kafka_3 import Kafka3Node, Kafka3OnZooKeeper

from tests.differential.dropped.cases import GOLDEN, GUARDED, ON_ZOOKEEPER, SETTINGS, cases
from tests.differential.dropped.known import page_with_table
from tests.differential.dropped.talk import OldAddress, OldTalk
from tests.differential.known import PAGE
from tests.differential.record import Recordings, report
from tests.differential.runner import load, run, save


class _GuardedNode(Kafka3Node):
    """A node that has a listener for log-ins besides."""

    sasl_port = 0

    def _properties(self, port: int, controller_port: int) -> dict[str, str]:
        (self.sasl_port,) = free_ports(1)
        properties = super()._properties(port, controller_port)
        for key in ("listeners", "advertised.listeners"):
            properties[key] += f",SASL_PLAINTEXT://127.0.0.1:{self.sasl_port}"
        properties["listener.security.protocol.map"] += ",SASL_PLAINTEXT:SASL_PLAINTEXT"
        return properties


def _record(address: OldAddress, *, on_zookeeper: bool) -> Recordings:
    found: Recordings = {}
    for module, own in cases().items():
        if (module in ON_ZOOKEEPER) is on_zookeeper:
            for name, scenario in own.items():
                began = time.monotonic()
                found.setdefault(module, {})[name] = recording = run(scenario, name, address, OldTalk)
                print(f"{module}: {name}: {len(recording)} steps in {time.monotonic() - began:.2f} s", flush=True)
    return found


def _ask_kafka() -> Recordings:
    guarded = _GuardedNode(config=SETTINGS | GUARDED, heap="512m")
    with guarded:
        found = _record(OldAddress.at(guarded.bootstrap, guarded.sasl_port), on_zookeeper=False)
    with Kafka3OnZooKeeper(config=SETTINGS, heap="512m") as node:
        return found | _record(OldAddress.at(node.bootstrap), on_zookeeper=True)


def main() -> int:
    """0 when the golden files hold what was found, or were written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where Kafka differs from the golden files")
    parser.add_argument(
        "--page", action="store_true", help="only write the table of known differences into docs/compatibility.md"
    )
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(page_with_table(PAGE.read_text()))
        return 0
    runs = [_ask_kafka(), _ask_kafka()]
    if report(runs[0], runs[1], []):
        print("Two runs against Kafka differ: nothing is written.", file=sys.stderr)
        return 1
    golden = {module: load(module, GOLDEN) for module in cases() if (GOLDEN / f"{module}.json").exists()}
    changed = report(golden, runs[0], []) if golden else 0
    if options.check:
        return 1 if changed else 0
    for module, recordings in runs[0].items():
        save(module, recordings, GOLDEN)
    PAGE.write_text(page_with_table(PAGE.read_text()))
    print(f"{sum(len(r) for own in runs[0].values() for r in own.values())} steps recorded, {changed} fields changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
