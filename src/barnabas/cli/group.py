"""`barnabas group`: consumer groups, their offsets and lag, and resetting their offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import Connection, connection_options, fail, is_error, reason_of
from barnabas.cli.errors import Failure
from barnabas.cli.lazy import HELP_OPTIONS
from barnabas.cli.offsets import AGO, DATETIME, SCOPE, Partition, list_offsets, parse_scope
from barnabas.cli.output import Output, output_option, print_fields, report_failures
from barnabas.cli.types import OFFSET, READABLE, SHIFT
from barnabas.error_codes import ErrorCode

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

LIST_COLUMNS = {"group": "GROUP", "state": "STATE", "type": "TYPE", "simple": "SIMPLE"}
LAG_COLUMNS = {"topic": "TOPIC", "partition": "PARTITION", "committed": "COMMITTED", "end": "END", "lag": "LAG",
               "client_id": "CLIENT", "host": "HOST"}  # fmt: skip
HELD_COLUMNS = {**LAG_COLUMNS, "stable": "STABLE", "held_by": "HELD BACK BY"}
MEMBER_COLUMNS = {"member": "MEMBER", "instance": "INSTANCE", "client_id": "CLIENT", "host": "HOST", "partitions": "PARTITIONS"}
RESET_COLUMNS = {"topic": "TOPIC", "partition": "PARTITION", "committed": "COMMITTED", "new": "NEW OFFSET"}
STATES = ["stable", "empty", "dead", "preparing-rebalance", "completing-rebalance", "assigning", "reconciling"]


@click.group(context_settings=HELP_OPTIONS)
def group() -> None:
    """Show consumer groups and their lag, reset and delete offsets."""


@group.command("list")
@click.option("--state", "states", multiple=True, type=click.Choice(STATES), help="Only groups in this state; repeatable.")
@connection_options
@output_option
def list_groups(connection: Connection, output: Output, states: tuple[str, ...]) -> None:
    """List consumer groups and their states."""
    from confluent_kafka import KafkaException

    admin = connection.admin()
    try:
        listing = admin.list_consumer_groups(request_timeout=connection.timeout_s).result(connection.timeout_s + 1)
    except KafkaException as error:
        fail("cannot list groups", error)
    rows = [
        {"group": g.group_id, "state": _word(g.state), "type": _word(g.type), "simple": g.is_simple_consumer_group}
        for g in sorted(listing.valid, key=lambda g: str(g.group_id))
    ]
    output.table([row for row in rows if not states or row["state"] in states], LIST_COLUMNS, empty="no groups")
    if listing.errors:
        raise Failure(f"not every broker answered: {reason_of(listing.errors[0])}")


@group.command("describe")
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@click.option("--members", "with_members", is_flag=True, help="Show the members and their partitions.")
@connection_options
@output_option
def describe(connection: Connection, output: Output, names: tuple[str, ...], with_members: bool) -> int:
    """Show state, members and lag of groups.

    If an open transaction blocks readers of committed records, its transactional id is shown, and STABLE, the offset where it
    begins.
    """
    admin = connection.admin()
    described = [describe_group(admin, name, connection.timeout_s) for name in names]
    for each in described:
        _tell_holders(connection, admin, each["partitions"])
    missing = [f"group {g['group']}: there is no such group" for g in described if is_missing(g)]
    found = [g for g in described if not is_missing(g)]
    if output.as_json:
        output.json(found)
    else:
        for one in found:
            _print_group(output, one, with_members)
    return report_failures(missing)


def _print_group(output: Output, described: dict[str, Any], with_members: bool) -> None:
    summary = {name: described[name] for name in ("group", "state", "type", "assignor", "coordinator")}
    print_fields({**summary, "members": len(described["members"]), "lag": described["lag"]})
    if with_members:
        output.table(described["members"], MEMBER_COLUMNS, empty="no members")
    is_held = any(row["held_by"] for row in described["partitions"])
    output.table(described["partitions"], HELD_COLUMNS if is_held else LAG_COLUMNS, empty="no committed offsets")
    click.echo()


def _tell_holders(connection: Connection, admin: AdminClient, rows: list[dict[str, Any]]) -> None:
    """Add to each row the last stable offset. If this is before the end, also add the transaction that blocks it."""
    ends = {(row["topic"], row["partition"]): row["end"] for row in rows if row["end"] is not None}
    stable = list_offsets(admin, ends, "latest", connection.timeout_s, stable=True, missing={})
    held = {where for where, offset in stable.items() if offset < ends[where]}
    holders = _holders(connection, held) if held else {}
    for row in rows:
        where = row["topic"], row["partition"]
        row["stable"], row["held_by"] = stable.get(where), holders.get(where)


def _holders(connection: Connection, partitions: set[Partition]) -> dict[Partition, str]:
    """The transactional id of the first open transaction in each partition."""
    from barnabas.cli import transaction_requests
    from barnabas.cli.broker_connections import Brokers

    with Brokers(connection) as brokers:
        leaders = brokers.leaders({topic for topic, _ in partitions})
        places = {where: leader for where, leader in leaders.items() if where in partitions}
        rows = transaction_requests.named(brokers, transaction_requests.open_in_partitions(brokers, places))
    holders: dict[Partition, str] = {}
    for row in rows:  # the rows are sorted by their first offset
        holders.setdefault((row["topic"], row["partition"]), row["id"] or f"producer {row['producer_id']}")
    return holders


def is_missing(described: dict[str, Any]) -> bool:
    """Whether the group does not exist: a coordinator describes an unknown group as DEAD."""
    return described["state"] == "dead" and not described["partitions"]


def describe_group(admin: AdminClient, name: str, timeout_s: float) -> dict[str, Any]:
    """State, members and lag of a group as plain values; raises Failure."""
    from confluent_kafka import KafkaException

    try:
        found = admin.describe_consumer_groups([name], request_timeout=timeout_s)[name].result(timeout_s + 1)
    except KafkaException as error:
        if is_error(error, ErrorCode.GROUP_ID_NOT_FOUND):
            return {"group": name, "state": "dead", "partitions": [], "members": [], "lag": 0}
        fail(f"group {name}", error)
    members = [_plain_member(member) for member in found.members]
    holders = {where: member for member in members for where in member.pop("_assigned")}
    committed = committed_offsets(admin, name, timeout_s)
    rows = lag_rows(committed, _known_ends(admin, set(committed) | set(holders), timeout_s), holders)
    coordinator = found.coordinator
    return {
        "group": name,
        "state": _word(found.state),
        "type": _word(found.type),
        "assignor": found.partition_assignor or None,
        "coordinator": f"{coordinator.host}:{coordinator.port} ({coordinator.id})" if coordinator is not None else None,
        "lag": sum(row["lag"] or 0 for row in rows),
        "members": members,
        "partitions": rows,
    }


def _plain_member(member: Any) -> dict[str, Any]:
    assigned = [(p.topic, p.partition) for p in (member.assignment.topic_partitions if member.assignment else [])]
    return {
        "member": member.member_id,
        "instance": member.group_instance_id,
        "client_id": member.client_id,
        "host": member.host.lstrip("/"),
        "partitions": [f"{topic}:{partition}" for topic, partition in sorted(assigned)],
        "_assigned": assigned,
    }


def lag_rows(
    committed: dict[Partition, int], ends: dict[Partition, int], holders: dict[Partition, dict[str, Any]]
) -> list[dict[str, Any]]:
    """One row for each partition that has an offset or a member; lag is None if one of the two offsets is unknown."""
    rows = []
    for topic, partition in sorted(set(committed) | set(holders)):
        where = (topic, partition)
        offset, end, holder = committed.get(where), ends.get(where), holders.get(where, {})
        lag = max(end - offset, 0) if offset is not None and end is not None else None
        who = {name: holder.get(name) for name in ("member", "client_id", "host")}
        rows.append({"topic": topic, "partition": partition, "committed": offset, "end": end, "lag": lag, **who})
    return rows


def committed_offsets(admin: AdminClient, name: str, timeout_s: float) -> dict[Partition, int]:
    """The committed offsets of the group; raises Failure."""
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException

    try:
        futures = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)], request_timeout=timeout_s)
        result = futures[name].result(timeout_s + 1)
    except KafkaException as error:
        fail(f"group {name}", error)
    return {(p.topic, p.partition): p.offset for p in result.topic_partitions or [] if p.offset >= 0}


def _known_ends(admin: AdminClient, partitions: set[Partition], timeout_s: float) -> dict[Partition, int]:
    """The end offsets of those partitions that exist and have a leader. A group may have committed offsets of a topic that was
    deleted."""
    existing = {
        (name, number) for name, topic in admin.list_topics(timeout=timeout_s).topics.items() for number in topic.partitions
    }
    return list_offsets(admin, partitions & existing, "latest", timeout_s, missing={})


@group.command("reset-offsets")
@click.argument("name", metavar="GROUP")
@click.option(
    "-t", "--topic", "topics", type=SCOPE, multiple=True, metavar="TOPIC[:P,P]", help="A topic, or partitions of it; repeatable."
)
@click.option("--all-topics", is_flag=True, help="Every topic for which the group has offsets.")
@click.option("--to-earliest", is_flag=True, help="To the first record.")
@click.option("--to-latest", is_flag=True, help="To the end, after the last record.")
@click.option("--to-current", is_flag=True, help="To the current offsets of the group (to keep them, with --export).")
@click.option("--to-offset", type=OFFSET, metavar="N", help="To this offset, or the nearest in the partition.")
@click.option(
    "--to-datetime",
    type=DATETIME,
    metavar="TIME",
    help="To the first record at or after 2026-01-31T12:00:00 (local time unless it has a zone).",
)
@click.option("--by-duration", type=AGO, metavar="DURATION", help="Back by 90s, 5m, 1h30m or PT1H30M from now.")
@click.option("--shift-by", type=SHIFT, metavar="N", help="By N records forward, or back if negative.")
@click.option("--from-file", type=READABLE, help="To the offsets in a file with lines topic,partition,offset.")
@click.option("--export", is_flag=True, help="Print lines topic,partition,offset, the format of --from-file.")
@click.option("--execute", is_flag=True, help="Commit the new offsets. Without this they are only shown.")
@connection_options
@output_option
def reset_offsets(
    connection: Connection, output: Output, name: str, topics: tuple[str, ...], all_topics: bool, export: bool, execute: bool,
    **specs: Any,
) -> None:  # fmt: skip
    """Move the offsets of a group that has no active members.

    Shows the new offsets; --execute commits them. An offset outside the range of a partition becomes the nearest one inside.
    """
    from barnabas.cli import resets

    spec = resets.parse_spec(specs)
    admin = connection.admin()
    committed = committed_offsets(admin, name, connection.timeout_s)
    partitions = resets.select_partitions(admin, spec, topics, all_topics, committed, connection.timeout_s)
    targets = resets.resolve_targets(admin, spec, partitions, committed, connection.timeout_s)
    if execute:
        resets.commit_offsets(admin, name, targets, connection.timeout_s)
    rows = [
        {"topic": t, "partition": p, "committed": committed.get((t, p)), "new": new} for (t, p), new in sorted(targets.items())
    ]
    if export:
        click.echo("".join(f"{row['topic']},{row['partition']},{row['new']}\n" for row in rows), nl=False)
    elif output.as_json:
        output.json({"group": name, "executed": execute, "offsets": rows})
    else:
        output.table(
            rows,
            RESET_COLUMNS,
            title=f"group {name}" if execute else f"group {name}: nothing committed; --execute commits these offsets",
        )


@group.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="GROUP...")
@connection_options
@output_option
def delete(connection: Connection, output: Output, names: tuple[str, ...]) -> int:
    """Delete groups that have no members, with their offsets."""
    from confluent_kafka import KafkaException

    admin = connection.admin()
    deleted, failures = [], []
    for name, future in admin.delete_consumer_groups(list(names), request_timeout=connection.timeout_s).items():
        try:
            future.result()
        except KafkaException as error:
            failures.append(f"group {name}: {reason_of(error)}")
        else:
            deleted.append(name)
            if not output.as_json:
                click.echo(f"deleted group {name}")
    if output.as_json:
        output.json({"deleted": deleted, "failed": failures})
    return report_failures(failures)


@group.command("delete-offsets")
@click.argument("name", metavar="GROUP")
@click.option(
    "-t",
    "--topic",
    "topics",
    type=SCOPE,
    multiple=True,
    required=True,
    metavar="TOPIC[:P,P]",
    help="A topic, or partitions of it, whose offsets are deleted; repeatable.",
)
@connection_options
@output_option
def delete_offsets(connection: Connection, output: Output, name: str, topics: tuple[str, ...]) -> int:
    """Delete offsets of topics that the group does not read now."""
    from barnabas.cli import resets

    admin = connection.admin()
    committed = committed_offsets(admin, name, connection.timeout_s)
    scopes = [parse_scope(text) for text in topics]
    wanted = [(t, p) for t, p in committed if any(t == topic and p in (numbers or [p]) for topic, numbers in scopes)]
    if not wanted:
        raise Failure(f"group {name} has no offsets of {', '.join(topics)}")
    failures = resets.delete_offsets(connection, name, wanted)
    gone = [f"{topic}:{partition}" for topic, partition in sorted(wanted) if (topic, partition) not in failures]
    output.done(f"group {name} forgot {', '.join(gone) or 'nothing'}", {"group": name, "deleted": gone})
    return report_failures([f"group {name}, {t}:{p}: {reason}" for (t, p), reason in failures.items()])


def _word(state: Any) -> str:
    """A state such as `PREPARING_REBALANCING` in the form of options and output."""
    return str(state.name).lower().replace("_", "-").replace("rebalancing", "rebalance")
