"""`python -m tests.torture.spark`: kill a pipeline's driver, workers and broker; its output must be the plain calculation, each row once.

Prints a line for each kill; the exit code is 1 where a promise was broken, and the last line says how to run the same plan again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.torture.spark.plan import Sink
from tests.torture.spark.rounds import torture


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture.spark", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="kills (default 40)")
    parser.add_argument("--seed", type=int, default=1, help="decides who is killed, and the pauses (default 1)")
    kinds = [sink.value for sink in Sink]
    parser.add_argument("--sink", choices=kinds, default=kinds[0], help="how the output is written (default %(default)s)")
    options = parser.parse_args(arguments)
    began, done = time.monotonic(), 0
    try:
        for each in torture(options.rounds, options.seed, Sink(options.sink)):
            done = each.number
            print(f"round {each.number}: {each.kind.value} killed after {each.batches} micro-batches", flush=True)
    except AssertionError as broken:
        print(f"broken after round {done}: {broken}")
        print(f"again: python -m tests.torture.spark --rounds {max(done, 1)} --seed {options.seed} --sink {options.sink}")
        return 1
    print(
        f"{done} kills in {time.monotonic() - began:.0f} s: the output is the plain calculation, each row once; seed {options.seed}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
