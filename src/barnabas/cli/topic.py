"""`barnabas topic`: create, list, describe, alter and delete topics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import Connection, connection_options, fail, is_error, reason_of
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.lazy import HELP_OPTIONS
from barnabas.cli.output import Output, output_option, print_fields, report_failures
from barnabas.cli.patterns import parse_pattern
from barnabas.cli.properties import parse_pairs
from barnabas.cli.reassign import reassign
from barnabas.cli.types import PARTITIONS, REPLICAS, Text
from barnabas.digits import is_number
from barnabas.error_codes import ErrorCode

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient

    from barnabas.cli.offsets import Partition

LIST_COLUMNS = {"name": "TOPIC", "partitions": "PARTITIONS", "replicas": "REPLICAS", "internal": "INTERNAL"}
PARTITION_COLUMNS = {"partition": "PARTITION", "leader": "LEADER", "replicas": "REPLICAS", "isr": "IN SYNC", "start": "START",
                     "end": "END", "records": "OFFSETS"}  # fmt: skip
SETTING_COLUMNS = {"name": "SETTING", "value": "VALUE", "source": "SET BY"}


@click.group(context_settings=HELP_OPTIONS)
def topic() -> None:
    """Create, list, describe, alter and delete topics."""


topic.add_command(reassign)


def parse_assignment(text: str) -> list[list[int]]:
    """`1:2,2:3` as the brokers of each partition; raises BadInput."""
    found = [partition.split(":") for partition in text.split(",")]
    if not all(is_number(broker) for partition in found for broker in partition):
        raise BadInput(f"{text!r} is not like 1:2,2:3 (brokers of partition 0, of partition 1)")
    return [list(map(int, partition)) for partition in found]


@topic.command("create")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("-p", "--partitions", type=PARTITIONS, help="The number of partitions.  [default: the broker's num.partitions]")
@click.option("-r", "--replication-factor", type=REPLICAS, help="The replication factor.  [default: the broker's]")
@click.option(
    "--replica-assignment",
    "assignment",
    type=Text(parse_assignment),
    metavar="ID:ID,ID:ID...",
    help="The brokers of each partition, instead of the two options above.",
)
@click.option("--config", "pairs", multiple=True, metavar="KEY=VALUE", help="A topic setting; repeatable.")
@click.option("--if-not-exists", is_flag=True, help="Do not fail if a topic exists; leave it unchanged.")
@click.option("--validate-only", is_flag=True, help="Only check whether the broker would accept it.")
@connection_options
@output_option
def create(
    connection: Connection,
    output: Output,
    names: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    assignment: list[list[int]] | None,
    pairs: tuple[str, ...],
    if_not_exists: bool,
    validate_only: bool,
) -> int:
    """Create topics with the same settings."""
    from confluent_kafka.cimpl import NewTopic

    shape: dict[str, Any] = {"num_partitions": partitions or -1, "replication_factor": replication_factor or -1}
    if assignment:
        if partitions or replication_factor:
            raise click.UsageError("--replica-assignment excludes --partitions and --replication-factor")
        shape = {"num_partitions": len(assignment), "replica_assignment": assignment}
    settings = parse_pairs(pairs, "--config")
    topics = [NewTopic(name, config=settings, **shape) for name in names]
    admin = connection.admin()  # keep a reference: the futures fail if the client is garbage collected
    futures = admin.create_topics(topics, request_timeout=connection.timeout_s, validate_only=validate_only)
    ignore = ErrorCode.TOPIC_ALREADY_EXISTS if if_not_exists else None
    return _report(output, "would create" if validate_only else "created", futures, ignore=ignore)


@topic.command("list")
@click.argument("pattern", required=False, type=Text(parse_pattern))
@click.option("--internal", is_flag=True, help="Also list internal topics.")
@connection_options
@output_option
def list_topics(connection: Connection, output: Output, pattern: re.Pattern[str] | None, internal: bool) -> None:
    """List all topics, or those whose name matches the regular expression PATTERN."""
    rows = []
    for name, found in sorted(describe_topics(connection.admin(), connection.timeout_s, None).items()):
        if "error" in found:  # the topic was just deleted
            continue
        if (found["internal"] and not internal) or (pattern and not pattern.search(name)):
            continue
        replicas = max((len(p["replicas"]) for p in found["partitions"]), default=0)
        rows.append({"name": name, "partitions": len(found["partitions"]), "replicas": replicas, "internal": found["internal"],
                     "id": found["id"]})  # fmt: skip
    output.table(rows, LIST_COLUMNS, empty="no topics")


@topic.command("describe")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@connection_options
@output_option
def describe(connection: Connection, output: Output, names: tuple[str, ...]) -> int:
    """Show partitions, offsets and changed settings of topics."""
    from barnabas.cli.offsets import list_offsets
    from barnabas.cli.resources import describe_settings
    from barnabas.protocol.values import ResourceType

    admin = connection.admin()
    found = describe_topics(admin, connection.timeout_s, names)
    missing = [f"topic {name}: {found[name]['error']}" for name in names if "error" in found[name]]
    topics = [found[name] for name in dict.fromkeys(names) if "error" not in found[name]]
    partitions = [(t["name"], p["partition"]) for t in topics for p in t["partitions"]]
    unknown: dict[Partition, str] = {}
    starts = list_offsets(admin, partitions, "earliest", connection.timeout_s, missing=unknown)
    ends = list_offsets(admin, partitions, "latest", connection.timeout_s, missing=unknown)
    missing += [f"{name}:{partition}: {reason}" for (name, partition), reason in sorted(unknown.items())]
    with connection.wire() as wire:
        for described in topics:
            settings = describe_settings(wire, ResourceType.TOPIC, described["name"])
            described["settings"] = [s for s in settings if not s["default"]]
            for p in described["partitions"]:
                where = described["name"], p["partition"]
                p["start"], p["end"] = starts.get(where), ends.get(where)
                p["records"] = None if where in unknown else ends[where] - starts[where]
    if output.as_json:
        output.json(topics)
    else:
        for described in topics:
            _print_topic(output, described)
    return report_failures(missing)


def _print_topic(output: Output, described: dict[str, Any]) -> None:
    print_fields({"topic": described["name"], "id": described["id"], "partitions": len(described["partitions"])})
    output.table(described["partitions"], PARTITION_COLUMNS)
    if described["settings"]:
        output.table(described["settings"], SETTING_COLUMNS)
    click.echo()


@topic.command("alter")
@click.argument("name")
@click.option("-p", "--partitions", type=PARTITIONS, help="Increase the number of partitions to this.")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Give a setting a value; repeatable.")
@click.option("--delete", "deletes", multiple=True, metavar="KEY", help="Reset a setting to its default; repeatable.")
@connection_options
@output_option
def alter(
    connection: Connection, output: Output, name: str, partitions: int | None, sets: tuple[str, ...], deletes: tuple[str, ...]
) -> None:
    """Add partitions to a topic or change its settings."""
    from confluent_kafka import KafkaException
    from confluent_kafka.cimpl import NewPartitions

    from barnabas.cli.resources import alter_settings, parse_changes
    from barnabas.protocol.values import ResourceType

    changes = parse_changes(sets=sets, deletes=deletes, appends=(), subtracts=())
    if partitions is None and not changes:
        raise click.UsageError("nothing to alter: give --partitions, --set or --delete")
    if changes:
        with connection.wire() as wire:
            alter_settings(wire, ResourceType.TOPIC, name, changes, validate_only=False)
    if partitions is not None:
        admin = connection.admin()
        request = admin.create_partitions([NewPartitions(name, partitions)], request_timeout=connection.timeout_s)
        try:
            request[name].result(connection.timeout_s + 1)
        except KafkaException as error:
            fail(f"topic {name}", error)
    output.done(f"altered topic {name}", {"topic": name, "partitions": partitions, "settings": [c.name for c in changes]})


@topic.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--if-exists", is_flag=True, help="Do not fail if a topic does not exist.")
@connection_options
@output_option
def delete(connection: Connection, output: Output, names: tuple[str, ...], if_exists: bool) -> int:
    """Delete topics with all their records."""
    admin = connection.admin()
    futures = admin.delete_topics(list(names), request_timeout=connection.timeout_s)
    return _report(output, "deleted", futures, ignore=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if if_exists else None)


def _report(output: Output, done: str, futures: Mapping[str, Future[None]], *, ignore: ErrorCode | None) -> int:
    """Wait for each topic and print its result; returns the exit code."""
    from confluent_kafka import KafkaException

    succeeded, failures = [], []
    for name, future in futures.items():
        try:
            future.result()
        except KafkaException as error:
            if ignore is None or not is_error(error, ignore):
                failures.append(f"topic {name}: {reason_of(error)}")
        else:
            succeeded.append(name)
            if not output.as_json:
                click.echo(f"{done} topic {name}")
    if output.as_json:
        output.json({done.replace("would create", "valid"): succeeded, "failed": failures})
    return report_failures(failures)


def describe_topics(admin: AdminClient, timeout_s: float, names: tuple[str, ...] | None) -> dict[str, dict[str, Any]]:
    """Topics by name as plain values, all topics if `names` is None; a topic that could not be described has only `error`."""
    from confluent_kafka import KafkaException, TopicCollection

    try:
        wanted = list(admin.list_topics(timeout=timeout_s).topics) if names is None else list(dict.fromkeys(names))
        if not wanted:
            return {}
        futures = admin.describe_topics(TopicCollection(wanted), request_timeout=timeout_s)
    except (KafkaException, ValueError) as error:
        raise Failure(f"cannot describe topics: {reason_of(error)}") from error
    result: dict[str, dict[str, Any]] = {}
    for name, future in futures.items():
        try:
            result[name] = _plain_topic(future.result())
        except KafkaException as error:
            result[name] = {"error": reason_of(error)}
    return result


def _plain_topic(described: Any) -> dict[str, Any]:
    partitions = [
        {"partition": p.id, "leader": p.leader.id if p.leader is not None else None, "replicas": [r.id for r in p.replicas],
         "isr": [r.id for r in p.isr]}
        for p in sorted(described.partitions, key=lambda p: p.id)
    ]  # fmt: skip
    return {
        "name": described.name,
        "id": str(described.topic_id),
        "internal": described.is_internal,
        "partitions": partitions,
    }
