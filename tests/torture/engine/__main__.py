"""`python -m tests.torture.engine`: change jobs while the engine, its driver and the broker are killed; each time, everything must become
as the jobs say.

Prints a line for each round; the exit code is 1 where that did not happen, and the last line says how to run the same plan again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.torture.engine.rounds import torture


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture.engine", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="default 20")
    parser.add_argument("--seed", type=int, default=1, help="decides changes, kills and moments (default 1)")
    options = parser.parse_args(arguments)
    began, number = time.monotonic(), 0
    try:
        for each in torture(options.rounds, options.seed):
            number = each.number
            print(f"round {number}: {each.kind} killed, {each.jobs} jobs are as declared after {each.seconds:.1f} s", flush=True)
    except AssertionError as broken:
        print(f"broken after round {number}: {broken}")
        print(f"again: python -m tests.torture.engine --rounds {options.rounds} --seed {options.seed}")
        return 1
    print(f"{number} rounds in {time.monotonic() - began:.0f} s: all as declared; seed {options.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
