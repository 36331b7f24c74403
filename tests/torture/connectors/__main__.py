"""`python -m tests.torture.connectors`: kill engines, runners and tasks while connectors work; each time, each record must be once in its
topic and once in its table.

Prints a line for each round; the exit code is 1 where that did not happen, and the last line says how to run the same plan again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.torture.connectors.rounds import torture
from tests.torture.front import parser_of, run_rounds

MODULE = "tests.torture.connectors"


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser_of(MODULE, __doc__, rounds=20, decides="kills and moments").parse_args(arguments)
    return run_rounds(
        f"python -m {MODULE} --rounds {options.rounds} --seed {options.seed}",
        torture(options.rounds, options.seed),
        lambda each: f"{each.kind} ended, {each.rows} rows, all go on after {each.seconds:.1f} s",
        lambda done: f"{done.rounds} rounds in {done.seconds:.0f} s: each record once; seed {options.seed}",
    )


if __name__ == "__main__":
    sys.exit(main())
