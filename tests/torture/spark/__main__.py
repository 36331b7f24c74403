"""`python -m tests.torture.spark`: kill a pipeline's driver, workers and broker; its output must be the plain calculation, each row once.

Prints a line for each kill; the exit code is 1 where a promise was broken, and the last line says how to run the same plan again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.torture.front import parser_of, run_rounds
from tests.torture.spark.plan import Sink
from tests.torture.spark.rounds import torture

MODULE = "tests.torture.spark"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of(MODULE, __doc__, rounds=40, decides="who is killed, and the pauses")
    kinds = [sink.value for sink in Sink]
    parser.add_argument("--sink", choices=kinds, default=kinds[0], help="how the output is written (default %(default)s)")
    options = parser.parse_args(arguments)
    return run_rounds(
        f"python -m {MODULE} --rounds {options.rounds} --seed {options.seed} --sink {options.sink}",
        torture(options.rounds, options.seed, Sink(options.sink)),
        lambda each: f"{each.kind.value} killed after {each.batches} micro-batches",
        lambda done: (
            f"{done.rounds} kills in {done.seconds:.0f} s: the output is the plain calculation, each row once; seed {options.seed}"
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
