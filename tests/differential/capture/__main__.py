"""Send the same changes through Debezium and through our capture, and compare all records: `python -m tests.differential.capture`.

The first part is a fixed list of changes; what Debezium makes of it goes to `golden.json`. The second part is the random workload of
`tests/torture/databases`: the tables that the topics make must also be those of the database. The third part reads the tables of the first
one by incremental snapshots.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain

from tools.kafka import DEBEZIUM_FOR_MARIADB

from tests.connect.plugins.servers import MariadbServer, PostgresServer
from tests.differential.capture import golden, mariadb, postgres
from tests.differential.capture.captures import Event, Topics, await_event, debezium, ours
from tests.differential.capture.comparison import differences
from tests.torture.databases import mariadb_workload, workload
from tests.torture.databases.folding import folded
from tests.torture.databases.rounds import rows_of

TRANSACTIONS = 500
NAMES = ("theirs", "mine")  # of tables of signals
TABLES_OF_SIGNALS = [f"CREATE TABLE {each} (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))" for each in NAMES]
Compared = Callable[[Sequence[Event], Sequence[Event]], Iterator[str]]


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


def incremental() -> Iterator[str]:
    """The differences of incremental snapshots. Each capture has a table of signals of its own."""
    with closing(PostgresServer()) as server:
        golden.run(server, *postgres.SCHEMA, *TABLES_OF_SIGNALS)
        theirs, mine = (
            postgres.config(server.port, name, r"public\.(kinds|keyed|done)") | _signals("public", name) for name in NAMES
        )  # fmt: skip
        with debezium(theirs) as left, ours(mine) as right:
            run = partial(golden.run, server)
            yield from _read_again((left, right), "public", run, postgres.CHANGES, differences)


def incremental_of_mariadb() -> Iterator[str]:
    """The same for MariaDB."""
    with closing(MariadbServer()) as server:
        mariadb.run(server, *mariadb.SCHEMA, "INSERT INTO done VALUES (0)", *TABLES_OF_SIGNALS)
        theirs, mine = (
            mariadb.config(server.port, number, r"shop\.(kinds|keyed|done)") | _signals("shop", name)
            for number, name in zip((5400, 5500), NAMES, strict=True)
        )
        with debezium(theirs, DEBEZIUM_FOR_MARIADB) as left, ours(mine) as right:
            run = partial(mariadb.run, server)
            yield from _read_again((left, right), "shop", run, mariadb.CHANGES, mariadb.differences)


def _signals(schema: str, table: str) -> dict[str, str]:
    """More of a config, for incremental snapshots in small parts."""
    return {"signal.data.collection": f"{schema}.{table}", "incremental.snapshot.chunk.size": "3"}


def _read_again(
    captures: Sequence[Topics], schema: str, run: Callable[..., object], changes: Sequence[str], compared: Compared
) -> Iterator[str]:
    """The differences of tables that are read after changes."""
    done = f"{schema}.done"
    tables = [f"{schema}.kinds", f"{schema}.keyed", done]
    for each in captures:
        await_event(each, done, 1)
    run(*changes, "INSERT INTO done VALUES (1)")
    wanted = json.dumps({"type": "incremental", "data-collections": tables})
    run(*(f"INSERT INTO {name} VALUES ('1', 'execute-snapshot', '{wanted}')" for name in NAMES))
    for each in captures:
        await_event(each, done, 4)
    for table in tables:
        theirs, mine = (list(filter(_is_incremental, each.events(table))) for each in captures)
        if not theirs:
            yield f"{table}: Debezium has read no rows"
        yield from (f"{table} {each}" for each in compared(theirs, mine))


def _is_incremental(event: Event) -> bool:
    return event[1] is not None and event[1]["payload"]["source"]["snapshot"] == "incremental"


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


@contextmanager
def both_of_mariadb(server: MariadbServer, tables: str) -> Iterator[tuple[Topics, Topics]]:
    """The same for MariaDB."""
    theirs, mine = (mariadb.config(server.port, number, tables) for number in (5400, 5500))
    with debezium(theirs, DEBEZIUM_FOR_MARIADB) as left, ours(mine) as right:
        for each in (left, right):
            await_event(each, mariadb.DONE, 1)
        yield left, right


def fixed_of_mariadb() -> Iterator[str]:
    """The differences of the fixed list."""
    with closing(MariadbServer()) as server:
        mariadb.run(server, *mariadb.SCHEMA, "INSERT INTO done VALUES (0)")
        with both_of_mariadb(server, r"shop\..*") as topics:
            mariadb.run(server, *mariadb.CHANGES, "INSERT INTO done VALUES (1)")
            for each in topics:
                await_event(each, mariadb.DONE, 2)
            for table in mariadb.TABLES:
                theirs, mine = (each.events(table) for each in topics)
                yield from (f"{table} {each}" for each in mariadb.differences(theirs, mine))


def random_of_mariadb(seed: int, transactions: int) -> Iterator[str]:
    """The differences of a random workload."""
    with closing(MariadbServer()) as server:
        mariadb.run(server, *mariadb_workload.SCHEMA, "INSERT INTO done VALUES (0)")
        with both_of_mariadb(server, rf"shop\.({'|'.join(workload.TABLES)}|done)") as topics:
            with mariadb_workload.MariadbWorkload(server, seed) as load:
                load.go_on(transactions)
            mariadb_workload.touch(server)
            mariadb.run(server, "INSERT INTO done VALUES (1)")
            for each, name in zip(topics, ("Debezium", "barnabas"), strict=True):
                await_event(each, mariadb.DONE, 2)
                for table in workload.TABLES:
                    if not _makes(each, table, mariadb_workload.rows_of(server, table), "shop"):
                        yield f"{table}: the records of {name} do not make the table"


def _makes(topics: Topics, table: str, rows: Counter[str], schema: str = "public") -> bool:
    try:
        return folded(topics.records(f"{schema}.{table}")) == rows
    except AssertionError as error:
        print(f"{table}: {error}")
        return False


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code is 1 if there are differences."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.capture", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="decides the random workload (default %(default)s)")
    parser.add_argument("--transactions", type=int, default=TRANSACTIONS, help="of the workload (default %(default)s)")
    parser.add_argument("--database", choices=("postgres", "mariadb"), default="postgres", help="default %(default)s")
    options = parser.parse_args(arguments)
    first, second = (fixed, random) if options.database == "postgres" else (fixed_of_mariadb, random_of_mariadb)
    count = 0
    third = incremental() if options.database == "postgres" else incremental_of_mariadb()
    for each in chain(first(), second(options.seed, options.transactions), third):
        print(each[:300], flush=True)
        count += 1
    print(f"capture: {count} differences to Debezium that are not known")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
