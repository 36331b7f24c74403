"""`python -m tests.torture.tables`: scan topics while they are written, compacted and cut and the broker is killed; each scan must
equal a consumer.

Prints a line for each round; the exit code is 1 where a promise was broken, and the last line says how to run the same plan again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.torture.tables.plan import Plan
from tests.torture.tables.rounds import torture


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture.tables", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="kills (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="decides records, aborts and pauses (default 1)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of scans before each kill, at most (default 2)")
    options = parser.parse_args(arguments)
    plan = Plan(options.rounds, options.seed, options.seconds)
    began = time.monotonic()
    number = scans = rows = 0
    try:
        for each in torture(plan):
            number, scans, rows = each.number, scans + each.scans, rows + each.rows
            print(f"round {number}: {each.scans} scans, {each.rows:,} rows, {each.written:,} records written", flush=True)
    except AssertionError as broken:
        print(f"broken after round {number}: {broken}")
        print(f"again: python -m tests.torture.tables --rounds {plan.rounds} --seed {plan.seed} --seconds {plan.seconds:g}")
        return 1
    print(
        f"{number} rounds in {time.monotonic() - began:.0f} s: {scans:,} scans with {rows:,} rows equal a consumer; seed {plan.seed}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
