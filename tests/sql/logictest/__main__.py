"""Runs files of the format sqllogictest against a server.

    python -m tests.sql.logictest "host=127.0.0.1 port=5433 user=anna dbname=barnabas" FILE …

Before each file all tables and views are dropped.
"""

from __future__ import annotations

import sys
from pathlib import Path

import psycopg

from tests.sql.logictest.running import drop_everything, run

SHOWN = 30


def main() -> None:
    """Run the files of the command line, and print what failed."""
    dsn, total, passed = sys.argv[1], 0, 0
    for name in sys.argv[2:]:
        with psycopg.connect(dsn, autocommit=True) as connection:
            drop_everything(connection)
            outcome = run(connection, Path(name), connect=lambda: psycopg.connect(dsn, autocommit=True))
        total, passed = total + outcome.passed + len(outcome.failures), passed + outcome.passed
        print(f"{name}: {outcome.passed} passed, {len(outcome.failures)} failed")
        for reason, count in outcome.kinds().most_common(SHOWN):
            print(f"  {count:5} {reason}")
    print(f"{passed} of {total} passed")


if __name__ == "__main__":
    main()
