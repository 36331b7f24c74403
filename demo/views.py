"""The chapter of SQL: a view of the delays that psql asks while flights leave, and its proof by pandas.

How it works
    The flights are published again, to a topic of their own. `barnabas sql start` and `barnabas engine start` run as processes
    beside the broker. `barnabas sql` creates the tables and the view, and psql asks the view until the year is over; without
    psql the shell of barnabas asks.

Rules
  1. The proof shares the names of the columns with the view, nothing else. It reads the package's files, not the topics.
  2. The processes end with the chapter, for every reason of its end.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from barnabas.testing.children import Child
from demo import data, publish, topics
from demo.data import DemoError, Slice
from demo.progress import Board
from demo.publish import Pace

DEPARTURES = "departures"
DELAYS = "delays"
FASTER = 3  # this chapter plays the year so many times faster than the pipeline
ASK_EVERY_S = 3.0
READY_S = 60.0
STOP_S = 30.0
READY = {"sql": "Postgres port accepts", "engine": "engine accepts"}  # in the output of a service
COMMAND = [sys.executable, "-m", "barnabas.cli"]
DROPS = f"DROP MATERIALIZED VIEW IF EXISTS {DELAYS}; DROP TABLE IF EXISTS {DEPARTURES}"
TABLES = f"""
CREATE TABLE {DEPARTURES} (carrier text, origin text, dep_delay int, scheduled timestamptz) WITH (partitions = 3);
CREATE TABLE IF NOT EXISTS airlines (carrier text PRIMARY KEY, name text)"""
VIEW = f"""
CREATE MATERIALIZED VIEW {DELAYS} AS
  SELECT a.name, count(*) AS flights, count(dep_delay) AS departed, sum(dep_delay) AS minutes, max(dep_delay) AS longest
  FROM {DEPARTURES} d JOIN airlines a USING (carrier) GROUP BY a.name"""
QUESTION = (
    f"SELECT name, flights, round(minutes / departed::double, 1) AS mean_delay FROM {DELAYS} ORDER BY mean_delay DESC LIMIT 3"
)
PROOF = f"SELECT name, flights, departed, minutes, longest FROM {DELAYS}"

Row = tuple[str, int, int, int | None, int | None]


@dataclass(frozen=True, slots=True)
class Services:
    """SQL beside the broker: `postgres` is a URL."""

    bootstrap: str
    postgres: str

    def shell(self, statements: str) -> str:
        """Run statements in the shell; what it printed. Raises DemoError."""
        return _run([*COMMAND, "sql", "-b", self.bootstrap, "-c", statements])

    def ask(self, question: str) -> str:
        """Ask psql, or the shell where there is no psql. Raises DemoError."""
        psql = shutil.which("psql")
        return self.shell(question) if psql is None else _run([psql, "-X", self.postgres, "-c", question])


def run_views(bootstrap: str, part: Slice, days_per_second: float, work: Path, board: Board, *, again: bool = False) -> bool:
    """Run the chapter; whether the view was equal to pandas' result. The topic of airlines must be there.

    Args:
        days_per_second: of the pipeline; 0 publishes without waiting.
        again: whether a view of an earlier run is dropped first.

    Raises:
        DemoError: a process or a statement failed.
    """
    topics.end_offsets(bootstrap, "airlines")
    pace = Pace(days_per_second * FASTER)
    with _services(bootstrap, work) as services, ThreadPoolExecutor(max_workers=1, thread_name_prefix="demo") as pool:
        board.step(f"SQL at {services.postgres}")
        if again:
            services.shell(DROPS)
        services.shell(TABLES)
        flights = board.task("flights for the view", len(part.cut(data.table("flights"))))
        published = pool.submit(publish.publish_flights, bootstrap, part, pace, flights.update, DEPARTURES)
        try:
            board.say(VIEW.strip())
            services.shell(VIEW)
            board.step("the view is there, and flights leave")
            _ask_until_all_have_left(services, published, board)
            rows = _rows(services)
        finally:
            pace.stop.set()
    return is_proved(rows, part, board)


def _ask_until_all_have_left(services: Services, published: Future[int], board: Board) -> None:
    over = threading.Event()
    published.add_done_callback(lambda _: over.set())
    while True:
        is_over = over.is_set()
        board.say(services.ask(QUESTION).rstrip())
        if is_over:
            published.result()
            return
        over.wait(ASK_EVERY_S)


def _rows(services: Services) -> list[Row]:
    """All rows of the view, when it has every flight."""
    with psycopg.connect(services.postgres, autocommit=True) as connection:
        connection.execute(f"REFRESH MATERIALIZED VIEW {DELAYS}")
        return connection.execute(PROOF).fetchall()


def expected_rows(part: Slice) -> list[Row]:
    """The rows of the view, by pandas from the package's files."""
    flights = part.cut(data.table("flights")).merge(data.table("airlines"), on="carrier")
    figures = flights.groupby("name").agg(
        flights=("flight", "size"), departed=("dep_delay", "count"), minutes=("dep_delay", "sum"), longest=("dep_delay", "max")
    )
    made: list[Row] = []
    for name, row in figures.iterrows():
        has_left = row["departed"] > 0
        totals = (int(row["minutes"]), int(row["longest"])) if has_left else (None, None)
        made.append((str(name), int(row["flights"]), int(row["departed"]), *totals))
    return sorted(made, key=lambda row: row[0])


def is_proved(rows: list[Row], part: Slice, board: Board) -> bool:
    """Whether the rows are those of pandas; the board tells it."""
    found, wanted = sorted(rows, key=lambda row: row[0]), expected_rows(part)
    is_equal = bool(wanted) and found == wanted
    board.say(
        f"the view's {len(found)} airlines with {sum(row[1] for row in found):,} flights are {'' if is_equal else 'NOT '}equal to pandas"
    )
    if not is_equal:
        board.say(f"view {found}, pandas {wanted}")
    return is_equal


@contextmanager
def _services(bootstrap: str, work: Path) -> Iterator[Services]:
    work.mkdir(parents=True, exist_ok=True)
    state = work / "engine"
    shutil.rmtree(state, ignore_errors=True)  # it belongs to topics of an earlier run
    sql = [*COMMAND, "sql", "start", "-b", bootstrap, "--listener", "http://127.0.0.1:0", "--postgres", "127.0.0.1:0"]
    engine = [*COMMAND, "engine", "start", "-b", bootstrap, "--listener", "http://127.0.0.1:0", "--data-dir", str(state)]
    with _process(sql, work / "sql.log") as lines, _process(engine, work / "engine.log"):
        yield Services(bootstrap, f"postgresql://{_postgres(lines)}/barnabas")


def _postgres(log: Path) -> str:
    found = re.search(r"Postgres port accepts connections on (\S+)", log.read_text())
    assert found, f"the second line of the service tells the port:\n{log.read_text()}"
    return found[1]


@contextmanager
def _process(command: list[str], log: Path) -> Iterator[Path]:
    """A service that has told that it is ready, for the time of the block; its output is in the file."""
    with log.open("wb") as output:
        process: Child[bytes] = Child(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait_until_ready(process, log, command[len(COMMAND)])
        yield log
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(process: Child[bytes], log: Path, service: str) -> None:
    words, ticks = READY[service], threading.Event()
    for _ in range(int(READY_S / 0.05)):
        if words in log.read_text(errors="replace"):
            return
        if process.poll() is not None:
            break
        ticks.wait(0.05)
    raise DemoError(f"barnabas {service} start failed:\n{log.read_text(errors='replace')}")


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DemoError(f"{Path(command[0]).name}: {done.stderr.strip()}")
    return done.stdout
