"""`python -m tests.torture.tables`: scan topics while they are written, compacted and cut and the broker is killed; each scan must
equal a consumer.

Prints a line for each round; the exit code is 1 where a promise was broken, and the last line says how to run the same plan again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.torture.front import Done, parser_of, run_rounds
from tests.torture.tables.plan import Plan
from tests.torture.tables.rounds import Round, torture

MODULE = "tests.torture.tables"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of(MODULE, __doc__, rounds=20, decides="records, aborts and pauses")
    parser.add_argument("--seconds", type=float, default=2.0, help="of scans before each kill, at most (default %(default)s)")
    options = parser.parse_args(arguments)
    plan = Plan(options.rounds, options.seed, options.seconds)
    scans = rows = 0

    def told(each: Round) -> str:
        nonlocal scans, rows
        scans, rows = scans + each.scans, rows + each.rows
        return f"{each.scans} scans, {each.rows:,} rows, {each.written:,} records written"

    def summary(done: Done) -> str:
        return (
            f"{done.rounds} rounds in {done.seconds:.0f} s: {scans:,} scans with {rows:,} rows equal a consumer; seed {plan.seed}"
        )

    again = f"python -m {MODULE} --rounds {plan.rounds} --seed {plan.seed} --seconds {plan.seconds:g}"
    return run_rounds(again, torture(plan), told, summary)


if __name__ == "__main__":
    sys.exit(main())
