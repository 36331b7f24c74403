"""Send the same changes through Debezium and through our capture, and compare all records: `python -m tests.differential.capture`.

The first part is a fixed list of changes; what Debezium makes of it goes to `golden.json`. The second part is the random workload of
`tests/torture/databases`: the tables that the topics make must also be those of the database.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain

from tests.connect.plugins.servers import PostgresServer
from tests.differential.capture import golden, postgres
from tests.differential.capture.captures import Topics, await_event, debezium, ours
from tests.differential.capture.comparison import differences
from tests.torture.databases import workload
from tests.torture.databases.folding import folded
from tests.torture.databases.rounds import rows_of

TRANSACTIONS = 500


@contextmanager
def both(server: PostgresServer, tables: str) -> Iterator[tuple[Topics, Topics]]:
    """The topics of Debezium and ours, once both have their snapshots."""
    theirs, mine = (postgres.config(server.port, name, tables) for name in ("theirs", "mine"))
    with debezium(theirs) as left, ours(mine) as right:
        for each in (left, right):
            await_event(each, postgres.DONE, 1)
        yield left, right


def fixed() -> Iterator[str]:
    """The differences of the fixed list."""
    with closing(PostgresServer()) as server:
        golden.run(server, *postgres.SCHEMA)
        with both(server, r"public\..*") as topics:
            golden.run(server, *postgres.CHANGES, "INSERT INTO done VALUES (1)")
            for each in topics:
                await_event(each, postgres.DONE, 2)
            theirs, mine = ({table: each.events(table) for table in postgres.TABLES} for each in topics)
            golden.write(theirs)
            for table in postgres.TABLES:
                yield from (f"{table} {each}" for each in differences(theirs[table], mine[table]))


def random(seed: int, transactions: int) -> Iterator[str]:
    """The differences of a random workload."""
    with closing(PostgresServer()) as server:
        golden.run(server, *workload.SCHEMA, "INSERT INTO done VALUES (0)")
        with both(server, rf"public\.({'|'.join(workload.TABLES)}|done)") as topics:
            with workload.Workload(server, seed, renames_key=False) as load:
                load.go_on(transactions)
            golden.run(server, "INSERT INTO done VALUES (1)")
            for each in topics:
                await_event(each, postgres.DONE, 2)
            for table in workload.TABLES:
                theirs, mine = (each.events(f"public.{table}") for each in topics)
                yield from (f"{table} {each}" for each in differences(theirs, mine))
            workload.touch(server)
            golden.run(server, "INSERT INTO done VALUES (2)")
            for each, name in zip(topics, ("Debezium", "barnabas"), strict=True):
                await_event(each, postgres.DONE, 3)
                for table in workload.TABLES:
                    if not _makes(each, table, rows_of(server, table)):
                        yield f"{table}: the records of {name} do not make the table"


def _makes(topics: Topics, table: str, rows: Counter[str]) -> bool:
    try:
        return folded(topics.records(f"public.{table}")) == rows
    except AssertionError as error:
        print(f"{table}: {error}")
        return False


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code is 1 if there are differences."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.capture", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="decides the random workload (default %(default)s)")
    parser.add_argument("--transactions", type=int, default=TRANSACTIONS, help="of the workload (default %(default)s)")
    options = parser.parse_args(arguments)
    count = 0
    for each in chain(fixed(), random(options.seed, options.transactions)):
        print(each[:300], flush=True)
        count += 1
    print(f"capture: {count} differences to Debezium that are not known")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
