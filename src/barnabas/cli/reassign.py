"""`barnabas topic reassign`, `barnabas broker drain` and `barnabas cluster balance`: replicas on other brokers."""

from __future__ import annotations

from collections.abc import Sequence

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.moves import Layout, Manner, alter, carry_out, end_throttle, move_options, ongoing, read_layout, watch
from barnabas.cli.output import Output, output_option
from barnabas.cli.resources import resource_names
from barnabas.cli.types import BROKER_ID, REPLICAS, Text
from barnabas.cluster.planning.moves import CannotPlace, Partition, Replicas, balance, drain, resize
from barnabas.digits import is_number
from barnabas.protocol.values import ResourceType

MOVING_COLUMNS = {"topic": "TOPIC", "partition": "PARTITION", "replicas": "REPLICAS", "adding": "ADDING", "removing": "REMOVING"}


def _parse_brokers(text: str) -> list[int]:
    """Raises BadInput."""
    words = [word.strip() for word in text.split(",")]
    if not all(map(is_number, words)):
        raise BadInput(f"{text!r} is not a list of broker ids")
    return list(map(int, words))


@click.command("reassign")
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option(
    "--brokers",
    "chosen",
    type=Text(_parse_brokers),
    metavar="ID,ID...",
    help="The brokers that will hold the replicas.  [default: all]",
)
@click.option(
    "-r", "--replication-factor", type=REPLICAS, help="The number of replicas of each partition.  [default: as many as now]"
)
@click.option("--cancel", is_flag=True, help="Cancel the running moves of these topics.")
@click.option("--list", "only_list", is_flag=True, help="Show the running moves.")
@click.option("--watch", "only_watch", is_flag=True, help="Wait until the moves of these topics have ended.")
@move_options
@connection_options
@output_option
def reassign(
    connection: Connection,
    output: Output,
    names: tuple[str, ...],
    chosen: list[int] | None,
    replication_factor: int | None,
    cancel: bool,
    only_list: bool,
    only_watch: bool,
    manner: Manner,
) -> None:
    """Move topics to other brokers, or give them another number of replicas.

    Replicas that are on the given brokers already stay there. Without topics, --list, --watch and --cancel mean all topics.
    """
    with connection.wire() as wire:
        if cancel or only_list or only_watch:
            moving = {p: states for p, states in ongoing(wire).items() if not names or p[0] in names}
            if cancel:
                alter(wire, dict.fromkeys(moving))
                end_throttle(wire, names or {topic for topic, _ in moving})
                output.done(f"cancelled {len(moving)} moves", {"cancelled": len(moving)})
            elif only_watch:
                watch(wire, moving)
                end_throttle(wire, names or resource_names(wire, ResourceType.TOPIC))
                output.done(f"{len(moving)} moves are done", {"done": len(moving)})
            else:
                _list(output, moving)
            return
        if not names:
            raise BadInput("which topics? Name them, or use --list, --watch or --cancel")
        layout = read_layout(connection, wire)
        wanted = _of_topics(layout, names)
        racks = _chosen(layout, chosen)
        try:
            gone = {broker for replicas in wanted.values() for broker in replicas} - racks.keys()
            wanted = drain(wanted, gone, racks, layout.sizes, factor=replication_factor)
            if replication_factor is not None:
                wanted = resize(wanted, replication_factor, racks, layout.sizes)
        except CannotPlace as error:
            raise BadInput(str(error)) from error
        carry_out(wire, output, layout, wanted, manner)


def _list(output: Output, moving: dict[Partition, tuple[Replicas, Replicas, Replicas]]) -> None:
    rows = [
        {"topic": t, "partition": p, "replicas": list(replicas), "adding": list(adding), "removing": list(removing)}
        for (t, p), (replicas, adding, removing) in sorted(moving.items())
    ]
    output.table(rows, MOVING_COLUMNS, empty="nothing is being moved")


def _of_topics(layout: Layout, names: Sequence[str]) -> dict[Partition, Replicas]:
    known = {topic for topic, _ in layout.assignment}
    missing = [name for name in names if name not in known]
    if missing:
        raise Failure(f"topic {', '.join(missing)}: there is no topic of that name")
    return {partition: replicas for partition, replicas in layout.assignment.items() if partition[0] in names}


def _chosen(layout: Layout, chosen: list[int] | None) -> dict[int, str | None]:
    if chosen is None:
        return layout.racks
    unknown = [broker for broker in chosen if broker not in layout.racks]
    if unknown:
        raise BadInput(f"--brokers: no live broker has the id {', '.join(map(str, unknown))}")
    return {broker: layout.racks[broker] for broker in chosen}


@click.command("drain")
@click.argument("broker_id", type=BROKER_ID, metavar="ID")
@move_options
@connection_options
@output_option
def drain_broker(connection: Connection, output: Output, broker_id: int, manner: Manner) -> None:
    """Move every replica off a broker, so that you can remove the broker."""
    with connection.wire() as wire:
        layout = read_layout(connection, wire)
        if broker_id not in layout.racks and not any(broker_id in replicas for replicas in layout.assignment.values()):
            raise Failure(f"broker {broker_id}: there is none of that id")
        try:
            wanted = drain(layout.assignment, {broker_id}, layout.racks, layout.sizes)
        except CannotPlace as error:
            raise Failure(str(error)) from error
        carry_out(wire, output, layout, wanted, manner)


@click.command("balance")
@move_options
@connection_options
@output_option
def balance_cluster(connection: Connection, output: Output, manner: Manner) -> None:
    """Share bytes and leaderships evenly among the brokers, with the fewest moves."""
    with connection.wire() as wire:
        layout = read_layout(connection, wire)
        gone = {broker for replicas in layout.assignment.values() for broker in replicas} - layout.racks.keys()
        if gone:
            raise Failure(f"broker {', '.join(map(str, sorted(gone)))} is down; start it, or `barnabas broker drain` it")
        wanted = balance(layout.assignment, layout.racks, layout.sizes)
        carry_out(wire, output, layout, wanted, manner)
