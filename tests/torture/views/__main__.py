"""`python -m tests.torture.views`: write to tables while the driver, the engine and the broker are killed; each view and stream must equal
its query over the tables after each round.

Prints a line for each round; the exit code is 1 where a view was wrong, and the last line says how to run the same plan again.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from tests.torture.front import Done, parser_of, run_rounds
from tests.torture.views.rounds import STREAMS, VIEWS, Round, torture

MODULE = "tests.torture.views"


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser_of(MODULE, __doc__, rounds=40, decides="rows, kills and moments").parse_args(arguments)
    kinds = Counter[str]()

    def told(each: Round) -> str:
        kinds[each.kind] += 1
        return f"{each.kind} killed, {each.written} rows, right after {each.seconds:.1f} s"

    def summary(done: Done) -> str:
        killed = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
        kept = f"{len(VIEWS)} views and {len(STREAMS)} streams"
        return f"{done.rounds} rounds in {done.seconds:.0f} s ({killed}): {kept} equal their queries; seed {options.seed}"

    again = f"python -m {MODULE} --rounds {options.rounds} --seed {options.seed}"
    return run_rounds(again, torture(options.rounds, options.seed), told, summary)


if __name__ == "__main__":
    sys.exit(main())
