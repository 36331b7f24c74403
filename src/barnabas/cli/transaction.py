"""`barnabas transaction`: lists open transactions, finds the one that blocks a partition's readers, and ends transactions that
nothing else ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.lazy import HELP_OPTIONS
from barnabas.cli.offsets import SCOPE
from barnabas.cli.output import Output, output_option, print_fields, report_failures
from barnabas.cli.types import DURATION, OFFSET, PRODUCER_ID, Text
from barnabas.digits import INT16, INT64, is_number

if TYPE_CHECKING:
    from barnabas.cli.broker_connections import Brokers
    from barnabas.cli.offsets import Partition

LIST_COLUMNS = {"id": "TRANSACTIONAL ID", "coordinator": "COORDINATOR", "producer_id": "PRODUCER", "state": "STATE"}
PREPARED_COLUMNS = {"id": "TRANSACTIONAL ID", "coordinator": "COORDINATOR", "producer_id": "PRODUCER", "producer_epoch": "EPOCH",
                    "age_s": "AGE S", "partitions": "PARTITIONS"}  # fmt: skip
OPEN_COLUMNS = {"topic": "TOPIC", "partition": "PARTITION", "start_offset": "START OFFSET", "producer_id": "PRODUCER",
                "producer_epoch": "EPOCH", "silent_s": "SILENT S", "id": "TRANSACTIONAL ID"}  # fmt: skip
STATES = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]
DEFAULT_MAX_TIMEOUT_S = 15 * 60.0  # Kafka's default for transaction.max.timeout.ms


@click.group(context_settings=HELP_OPTIONS)
def transaction() -> None:
    """List, describe, find and end transactions."""


@transaction.command("list")
@click.option("--state", "states", multiple=True, type=click.Choice(STATES, case_sensitive=False), help="Only these; repeatable.")
@click.option(
    "--producer-id", "producer_ids", multiple=True, type=PRODUCER_ID, metavar="ID", help="Only of these producers; repeatable."
)
@click.option("--pattern", metavar="REGEX", help="Only transactional ids that match this regular expression (RE2) as a whole.")
@click.option("--longer-than", type=DURATION, metavar="SECONDS", help="Only transactions that began at least this long ago.")
@click.option("--prepared", is_flag=True, help="Only open transactions of two-phase commit, with their partitions.")
@connection_options
@output_option
def list_transactions(
    connection: Connection, output: Output, states: tuple[str, ...], producer_ids: tuple[int, ...], pattern: str | None,
    longer_than: float | None, prepared: bool,
) -> None:  # fmt: skip
    """List transactional ids and their states."""
    from barnabas.cli import transaction_requests
    from barnabas.cli.broker_connections import Brokers

    longer_than_ms = -1 if longer_than is None else int(longer_than * 1000)
    wanted = transaction_requests.Filter(("Ongoing",) if prepared else states, producer_ids, pattern, longer_than_ms)
    with Brokers(connection) as brokers:
        rows = transaction_requests.listed(brokers, wanted)
        if prepared:
            rows = [row for each in rows if (row := transaction_requests.described(brokers, each["id"]))["two_phase"]]
    output.table(rows, PREPARED_COLUMNS if prepared else LIST_COLUMNS, empty="no transactions")


@transaction.command("describe")
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@connection_options
@output_option
def describe(connection: Connection, output: Output, names: tuple[str, ...]) -> int:
    """Show the state, the owner and the partitions of transactional ids."""
    from barnabas.cli import transaction_requests
    from barnabas.cli.broker_connections import Brokers

    found, failures = [], []
    with Brokers(connection) as brokers:
        for name in names:
            try:
                found.append(transaction_requests.described(brokers, name))
            except Failure as failure:
                failures.append(failure.message)
    if output.as_json:
        output.json(found)
    else:
        for each in found:
            print_fields(each)
            click.echo()
    return report_failures(failures)


@transaction.command("open")
@click.argument("places", type=SCOPE, nargs=-1, metavar="[TOPIC[:P,P]]...")
@connection_options
@output_option
def show_open(connection: Connection, output: Output, places: tuple[str, ...]) -> None:
    """Show the open transactions in partitions, first the one that blocks readers.

    Readers of committed records stop at the START OFFSET of the first transaction in a partition. Without TOPIC the command
    checks all partitions.
    """
    from barnabas.cli import transaction_requests
    from barnabas.cli.broker_connections import Brokers

    with Brokers(connection) as brokers:
        rows = transaction_requests.named(brokers, transaction_requests.open_in_partitions(brokers, _leaders(brokers, places)))
    output.table(rows, OPEN_COLUMNS, empty="no open transactions")


@transaction.command("find-hanging")
@click.argument("places", type=SCOPE, nargs=-1, metavar="[TOPIC[:P,P]]...")
@click.option("--max-timeout", type=DURATION, default=DEFAULT_MAX_TIMEOUT_S, show_default=True, metavar="SECONDS",
              help="The longest transaction that producers may have; younger ones are skipped.")  # fmt: skip
@connection_options
@output_option
def find_hanging(connection: Connection, output: Output, places: tuple[str, ...], max_timeout: float) -> None:
    """Find hanging transactions: open in a partition, but no coordinator is going to end them.

    `barnabas transaction abort --partition` ends one. Without TOPIC the command checks all partitions.
    """
    from barnabas.cli import transaction_requests
    from barnabas.cli.broker_connections import Brokers

    with Brokers(connection) as brokers:
        rows = transaction_requests.open_in_partitions(brokers, _leaders(brokers, places))
        late = [row for row in rows if row["silent_s"] >= max_timeout]
        rows = transaction_requests.hanging(brokers, transaction_requests.named(brokers, late))
    output.table(rows, OPEN_COLUMNS, empty="no hanging transactions")


@transaction.command("abort")
@click.argument("name", required=False, metavar="[ID]")
@click.option(
    "--partition", "place", type=SCOPE, metavar="TOPIC:P", help="Abort a hanging transaction in this partition, of any producer."
)
@click.option("--start-offset", type=OFFSET, metavar="N", help="The first offset of the transaction; with --partition.")
@connection_options
@output_option
def abort(connection: Connection, output: Output, name: str | None, place: str | None, start_offset: int | None) -> None:
    """Abort the open transaction of a transactional id, even if it is prepared, or a hanging one in a partition.

    The current producer with the id is fenced. Use --partition only for transactions that `find-hanging` finds: of any other
    transaction it would abort only a part.
    """
    from barnabas.cli import transaction_requests
    from barnabas.cli.broker_connections import Brokers

    if (name is None) == (place is None):
        raise BadInput("give a transactional id, or --partition with --start-offset")
    if (place is None) != (start_offset is None):
        raise BadInput("--partition and --start-offset go together")
    with Brokers(connection) as brokers:
        if name is not None:
            after = transaction_requests.abort(brokers, name, connection.timeout_s)
            output.done(f"aborted the transaction of {name}", {"id": name, "state": after["state"]})
            return
        leaders = _leaders(brokers, (place or "",))
        if len(leaders) != 1:
            raise BadInput(f"{place!r} is not one partition, like topic:0")
        ((partition, leader),) = leaders.items()
        rows = [row for row in transaction_requests.open_in_partitions(brokers, leaders) if row["start_offset"] == start_offset]
        if not rows:
            raise Failure(f"no open transaction begins at {start_offset} of {partition[0]}:{partition[1]}")
        transaction_requests.write_abort_marker(brokers, leader, rows[0])
        output.done(f"aborted the transaction at {start_offset} of {partition[0]}:{partition[1]}", rows[0])


def _parse_owner(text: str) -> tuple[int, int]:
    producer_id, colon, epoch = text.partition(":")
    if not colon or not is_number(producer_id, INT64) or not is_number(epoch, INT16):
        raise BadInput(f"{text!r} is not PRODUCER:EPOCH")
    return int(producer_id), int(epoch)


@transaction.command("commit")
@click.argument("name", metavar="ID")
@click.option(
    "--expect",
    "expected",
    type=Text(_parse_owner),
    metavar="PRODUCER:EPOCH",
    help="Commit only this transaction; its writer noted these values when it prepared it.",
)
@connection_options
@output_option
def commit(connection: Connection, output: Output, name: str, expected: tuple[int, int] | None) -> None:
    """Commit a prepared transaction of two-phase commit whose external coordinator does not come back.

    A broker cannot distinguish a prepared transaction from one that is still being written. Make sure that its writer had
    finished.
    """
    from barnabas.cli import transaction_requests
    from barnabas.cli.broker_connections import Brokers

    with Brokers(connection) as brokers:
        after = transaction_requests.commit(brokers, name, expected, connection.timeout_s)
    output.done(f"committed the transaction of {name}", {"id": name, "state": after["state"]})


def _leaders(brokers: Brokers, places: tuple[str, ...]) -> dict[Partition, int]:
    """The chosen partitions with their leaders; raises BadInput for a partition that does not exist."""
    from barnabas.cli.offsets import parse_scope

    scopes = [parse_scope(text) for text in places]
    leaders = brokers.leaders({topic for topic, _ in scopes} if scopes else None)
    if not scopes:
        return leaders
    chosen = {}
    for topic, numbers in scopes:
        there = {index for name, index in leaders if name == topic}
        for index in numbers or sorted(there):
            if index not in there:
                raise BadInput(f"topic {topic} has no partition {index} with a leader")
            chosen[topic, index] = leaders[topic, index]
    return chosen
