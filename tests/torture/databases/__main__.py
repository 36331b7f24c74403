"""`python -m tests.torture.databases`: change a PostgreSQL or MariaDB database while connectors, database and broker are killed; each
time, the tables that the topics make must equal those of the database, and each record of a topic must be one row of a table.

Prints a line for each round; the exit code is 1 where that did not happen, and the last line says how to run the same plan again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.torture.databases.rounds import DATABASES, torture
from tests.torture.front import parser_of, run_rounds

MODULE = "tests.torture.databases"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of(MODULE, __doc__, rounds=20, decides="changes, kills and moments")
    parser.add_argument("--database", choices=list(DATABASES), default="postgres", help="default %(default)s")
    options = parser.parse_args(arguments)
    return run_rounds(
        f"python -m {MODULE} --rounds {options.rounds} --seed {options.seed} --database {options.database}",
        torture(options.rounds, options.seed, options.database),
        lambda each: (
            f"{', '.join(each.kinds)} killed, {each.transactions} transactions, {each.rows} rows equal after {each.seconds:.1f} s"
        ),
        lambda done: (
            f"{done.rounds} rounds in {done.seconds:.0f} s: tables and topics of {options.database} equal; seed {options.seed}"
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
