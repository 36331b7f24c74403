"""`python -m bench.tables.reader BOOTSTRAP TOPIC WAY`: reads a topic in a process of its own, and prints the rows and the most memory
in MB."""

from __future__ import annotations

import sys
from pathlib import Path

from barnabas.tables import table
from bench.tables.topics import COLUMNS, NAMES

WAYS = ("scan", "newest")


def main(bootstrap: str, topic: str, way: str) -> None:
    found = table(topic, bootstrap, format="json", columns=COLUMNS)
    reading = found.newest_by_key() if way == "newest" else found
    rows = sum(batch.num_rows for batch in reading.batches(NAMES))
    found.close()
    status = Path("/proc/self/status").read_text().splitlines()
    peak_kib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    print(rows, peak_kib * 1024 / 1e6)


if __name__ == "__main__":
    main(*sys.argv[1:])
