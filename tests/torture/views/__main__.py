"""`python -m tests.torture.views`: write to tables while the driver, the engine and the broker are killed; each view must equal its
query over the tables after each round.

Prints a line for each round; the exit code is 1 where a view was wrong, and the last line says how to run the same plan again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

from tests.torture.views.rounds import VIEWS, torture


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture.views", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="default 40")
    parser.add_argument("--seed", type=int, default=1, help="decides rows, kills and moments (default 1)")
    options = parser.parse_args(arguments)
    began_s, number, kinds = time.monotonic(), 0, Counter[str]()
    try:
        for each in torture(options.rounds, options.seed):
            number = each.number
            kinds[each.kind] += 1
            print(f"round {number}: {each.kind} killed, {each.written} rows, right after {each.seconds:.1f} s", flush=True)
    except AssertionError as broken:
        print(f"broken after round {number}: {broken}")
        print(f"again: python -m tests.torture.views --rounds {options.rounds} --seed {options.seed}")
        return 1
    told = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    took_s = time.monotonic() - began_s
    print(f"{number} rounds in {took_s:.0f} s ({told}): {len(VIEWS)} views equal their queries; seed {options.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
