"""`barnabas mirror`: links that copy topics of another cluster, with their offsets, and the promotion of copies."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import Connection, connection_options, parse_addresses
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.lazy import HELP_OPTIONS
from barnabas.cli.output import Output, counted, output_option
from barnabas.cli.types import READABLE, TIMEOUT, Text, checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.cli.mirror_failback import LostPart
    from barnabas.cli.mirror_requests import LinkView
    from barnabas.mirror.status import PartitionStatus

Command = Callable[..., Any]
LINKS = {"name": "LINK", "source": "FROM", "topics": "TOPICS", "copies": "COPIES", "lag": "LAG", "state": "STATE"}
COPIES = {"topic": "TOPIC", "partition": "PARTITION", "state": "STATE", "end": "END", "source_end": "SOURCE END",
          "lag": "LAG", "bytes": "BYTES", "behind": "BEHIND", "reason": "REASON"}  # fmt: skip
MISSING = {"topic": "TOPIC", "partition": "PARTITION", "first": "FROM", "source_end": "SOURCE END", "missing": "MISSING",
           "behind": "BEHIND", "silent": "SOURCE SILENT FOR"}  # fmt: skip
LOST = {"topic": "TOPIC", "partition": "PARTITION", "common": "COMMON", "end": "END", "beyond": "BEYOND", "saved": "SAVED",
        "aborted": "ABORTED", "saved_in": "SAVED IN"}  # fmt: skip
SETTINGS = {"name": "SETTING", "value": "VALUE"}
SHARES = {"part": "WHERE", "share": "SHARE", "meaning": "OF THE LAST 30 SECONDS"}
MEANINGS = {
    "source": "an answer began later than a round trip after its request",
    "line": "round trips, and bytes on their way",
    "target": "records were appended, or in-sync replicas were missing",
    "limit": "io.max.bytes.per.second of the link, or a quota of the source",
    "error": "pauses after errors",
    "idle": "the copies had everything",
}
UNKNOWN = "?"
MOST_COMPLAINTS = 5


def wait_option(default_s: float, what: str) -> Callable[[Command], Command]:
    """Give a command --wait."""
    return click.option("--wait", "wait_s", type=TIMEOUT, default=default_s, show_default=True, metavar="SECONDS", help=what)


def topic_options(all_help: str) -> Callable[[Command], Command]:
    """Give a command a link, and topics or --all. It is called with `topics`, which are empty for --all."""

    def add(function: Command) -> Command:
        @functools.wraps(function)
        def command(*, topics: tuple[str, ...], everything: bool, **options: Any) -> Any:
            if bool(topics) == everything:
                raise click.UsageError("name topics, or give --all")
            return function(topics=topics, **options)

        for option in (
            click.option("--all", "everything", is_flag=True, help=all_help),
            click.argument("topics", nargs=-1, metavar="[TOPIC]..."),
            click.argument("name", metavar="LINK"),
        ):
            command = option(command)
        return command

    return add


@click.group(context_settings=HELP_OPTIONS)
def mirror() -> None:
    """Copy topics of another cluster, with their offsets, and make copies writable."""


@mirror.command("create")
@click.argument("name", metavar="LINK")
@click.option(
    "--source",
    type=Text(checked(parse_addresses)),
    required=True,
    metavar="HOST:PORT,...",
    help="Brokers of the source cluster.",
)
@click.option(
    "--source-config",
    type=READABLE,
    help="A file of client settings for the source, as for Kafka's tools: TLS, log-in.  (--command-config is for the target.)",
)
@click.option("--topics", "patterns", multiple=True, metavar="REGEX", help="Topics to copy; repeatable.  [default: .*]")
@click.option(
    "--groups", "groups", multiple=True, metavar="REGEX", help="Groups whose offsets are copied; repeatable.  [default: .*]"
)
@click.option(
    "--exclude",
    "excluded",
    multiple=True,
    metavar="REGEX",
    help="Topics not to copy; repeatable.  [default: __.* and _barnabas.*]",
)
@click.option("--prefix", metavar="TEXT", help="The beginning of the names of the copies, such as eu.")
@click.option("--acls/--no-acls", default=None, help="Follow the ACLs of the copied topics and groups.  [default: no-acls]")
@click.option("--configs/--no-configs", default=None, help="Follow the settings of the topics.  [default: configs]")
@click.option("--quotas/--no-quotas", default=None, help="Follow the client quotas.  [default: no-quotas]")
@click.option("--users/--no-users", default=None, help="Follow the SCRAM users, if the source is barnabas.  [default: no-users]")
@click.option("--schemas/--no-schemas", default=None, help="Copy the schemas of the source's registry.  [default: no-schemas]")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Another setting of the link, such as security.protocol; repeatable.",
)
@connection_options
@output_option
def create(
    connection: Connection,
    output: Output,
    name: str,
    source: str,
    source_config: str | None,
    patterns: Sequence[str],
    groups: Sequence[str],
    excluded: Sequence[str],
    prefix: str | None,
    acls: bool | None,
    configs: bool | None,
    quotas: bool | None,
    users: bool | None,
    schemas: bool | None,
    sets: Sequence[str],
) -> None:
    """Create a link on the target cluster: topics of the source appear here as read-only copies.

    If the source does not answer, the command tells why; the link is there all the same, and tries again.
    """
    from barnabas.cli.broker_connections import Brokers
    from barnabas.cli.mirror_requests import alter_link, first_complaints, link_names
    from barnabas.cli.mirror_source import read_source_settings
    from barnabas.cli.resources import Change, Operation, parse_changes

    changes = parse_changes(sets=sets, deletes=(), appends=(), subtracts=())
    if source_config is not None:
        found = read_source_settings(source_config)
        set_here = {change.name for change in changes}
        changes += [Change(key, Operation.SET, value) for key, value in found.settings.items() if key not in set_here]
        if found.left_out:
            click.echo(f"not settings of a mirror link, and left out: {', '.join(found.left_out)}", err=True)
    servers = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in parse_addresses(source))
    changes.append(Change("bootstrap.servers", Operation.SET, servers))
    changes += [Change("topics", Operation.SET, ",".join(patterns))] if patterns else []
    changes += [Change("groups", Operation.SET, ",".join(groups))] if groups else []
    changes += [Change("topics.exclude", Operation.SET, ",".join(excluded))] if excluded else []
    changes += [Change("cluster.link.prefix", Operation.SET, prefix)] if prefix else []
    for key, wanted in (
        ("sync.topic.acls.enabled", acls),
        ("sync.topic.configs.enabled", configs),
        ("sync.client.quotas.enabled", quotas),
        ("sync.schemas.enabled", schemas),
        ("sync.users.enabled", users),
    ):
        changes += [] if wanted is None else [Change(key, Operation.SET, "true" if wanted else "false")]
    with Brokers(connection) as brokers:
        if name in link_names(brokers.first):
            raise Failure(f"there is a mirror link {name} already; `barnabas config alter link {name}` changes it")
        alter_link(brokers.first, name, changes)
        complaints = first_complaints(brokers, name)
    output.done(f"created mirror link {name}", {"link": name, "source": servers})
    for line in complaints[:MOST_COMPLAINTS]:
        click.echo(line, err=True)
    if len(complaints) > MOST_COMPLAINTS:
        click.echo(f"and {len(complaints) - MOST_COMPLAINTS} more: `barnabas mirror status {name}` lists them", err=True)


@mirror.command("list")
@connection_options
@output_option
def list_links(connection: Connection, output: Output) -> None:
    """List the links of the target cluster."""
    from barnabas.cli.broker_connections import Brokers
    from barnabas.cli.mirror_requests import link_names, view

    with Brokers(connection) as brokers:
        views = [view(brokers, name) for name in link_names(brokers.first)]
    output.table([_link_row(each) for each in views], LINKS, empty="no mirror links")


def _link_row(link: LinkView) -> dict[str, Any]:
    stopped = sum(each.state == "stopped" for each in link.partitions)
    state = "paused" if link.settings.get("paused") == "true" else link.errors[0] if link.errors else "running"
    lags = [each.lag for each in link.partitions]
    if link.refused:
        state += f", {counted(len(link.refused), 'topic')} refused"
    if link.not_followed:
        state += f", no {', no '.join(sorted(link.not_followed))}"
    return {
        "name": link.name,
        "source": link.settings.get("bootstrap.servers"),
        "topics": link.settings.get("topics"),
        "copies": len(link.topics),
        "lag": UNKNOWN if -1 in lags else sum(lags),
        "state": f"{state}, {counted(stopped, 'partition')} stopped" if stopped else state,
    }


@mirror.command("status")
@click.argument("name", metavar="LINK")
@click.option("--why", is_flag=True, help="Show what holds the link back: the source, the line, the target or a limit.")
@connection_options
@output_option
def status(connection: Connection, output: Output, name: str, why: bool) -> None:
    """Show for each partition of the copies how far it is, and what would be missing if the source died now."""
    from barnabas.cli.broker_connections import Brokers
    from barnabas.cli.mirror_requests import view

    with Brokers(connection) as brokers:
        found = view(brokers, name)
    (_show_why if why else _show_status)(output, found)


def _show_status(output: Output, found: LinkView) -> None:
    rows = [_copy_row(each) for each in found.partitions]
    rows += [
        {**dict.fromkeys(COPIES, ""), "topic": topic, "state": "refused", "reason": reason}
        for topic, reason in sorted(found.refused.items())
    ]
    if output.as_json:
        blank = {**dict.fromkeys(COPIES, ""), "state": "not_followed"}
        rows += [{**blank, "not_followed": what, "reason": reason} for what, reason in sorted(found.not_followed.items())]
    output.table(rows, COPIES, empty="no copies yet")
    if output.as_json:
        return
    if found.partitions:
        click.echo(_loss_text(found))
    if found.errors:
        click.echo(f"the source: {'; '.join(found.errors)}", err=True)
    for what, reason in sorted(found.not_followed.items()):
        click.echo(f"{what} are not copied: {reason}", err=True)


def _loss_text(found: LinkView) -> str:
    from barnabas.mirror.why import loss_of

    loss = loss_of(found.partitions)
    if loss.records < 0 or loss.milliseconds < 0:
        return "if the source died now: an unknown number of records would be missing"
    size = f", about {loss.bytes / 1e6:.1f} MB" if loss.bytes > 0 else ""
    return f"if the source died now: {loss.records} known records{size}, and what was written in the last {loss.milliseconds / 1000:.1f} s"


def _show_why(output: Output, found: LinkView) -> None:
    from barnabas.mirror.why import all_times, loss_of, verdict

    times = all_times(found.times)
    holder, text = verdict(is_paused=found.is_paused, errors=found.errors, partitions=found.partitions, times=times)
    shares = {part.value: share for part, share in times.shares.items()}
    if output.as_json:
        loss = loss_of(found.partitions)
        output.json({
            "link": found.name,
            "holds_back": holder.value,
            "text": text,
            "shares": {part: round(share, 4) for part, share in shares.items()},
            "bytes_per_second": round(times.bytes_per_s),
            "connections": times.fetchers,
            "round_trip_ms": round(times.round_trip_ms, 3) if times.round_trip_ms >= 0 else None,
            "missing_if_the_source_died_now": {
                "records": _known(loss.records), "bytes": _known(loss.bytes), "milliseconds": _known(loss.milliseconds)
            },
        })  # fmt: skip
        return
    click.echo(f"{found.name}: {text}")
    rows = [{"part": part, "share": f"{share:.0%}", "meaning": MEANINGS[part]} for part, share in shares.items()]
    output.table(rows, SHARES)
    if found.partitions:
        click.echo(_loss_text(found))


def _known(value: int) -> int | None:
    return value if value >= 0 else None


def _copy_row(each: PartitionStatus) -> dict[str, Any]:
    is_known = each.source_end_offset >= 0
    return {
        "topic": each.topic,
        "partition": each.partition,
        "state": each.state,
        "end": each.end_offset,
        "source_end": each.source_end_offset if is_known else UNKNOWN,
        "lag": each.lag if is_known else UNKNOWN,
        "bytes": each.lag_bytes if each.lag_bytes >= 0 else UNKNOWN,
        "behind": f"{each.lag_ms / 1000:.1f} s" if is_known else UNKNOWN,
        "reason": each.reason,
        "lag_ms": each.lag_ms,
        "silent_ms": each.silent_ms,
    }


@mirror.command("describe")
@click.argument("name", metavar="LINK")
@connection_options
@output_option
def describe(connection: Connection, output: Output, name: str) -> None:
    """Show the settings of a link."""
    from barnabas.cli.broker_connections import Brokers
    from barnabas.cli.mirror_requests import view

    with Brokers(connection) as brokers:
        settings = view(brokers, name).settings
    output.table([{"name": key, "value": value} for key, value in sorted(settings.items())], SETTINGS)


@mirror.command("pause")
@click.argument("name", metavar="LINK")
@connection_options
@output_option
def pause(connection: Connection, output: Output, name: str) -> None:
    """Stop fetching from the source until `resume`."""
    _set_paused(connection, name, paused=True)
    output.done(f"paused mirror link {name}", {"link": name})


@mirror.command("resume")
@click.argument("name", metavar="LINK")
@connection_options
@output_option
def resume(connection: Connection, output: Output, name: str) -> None:
    """Go on after `pause`."""
    _set_paused(connection, name, paused=False)
    output.done(f"resumed mirror link {name}", {"link": name})


def _set_paused(connection: Connection, name: str, *, paused: bool) -> None:
    from barnabas.cli.mirror_requests import alter_link, link_names
    from barnabas.cli.resources import Change, Operation

    with connection.wire() as wire:
        if name not in link_names(wire):
            raise Failure(f"there is no mirror link {name}")
        alter_link(wire, name, [Change("paused", Operation.SET, "true" if paused else "false")])


@mirror.command("promote")
@topic_options("All copies of the link.")
@click.option("--now", is_flag=True, help="Do not wait for the records that the source still has, as when the source is lost.")
@wait_option(60.0, "Seconds to wait until the copies have everything.")
@connection_options
@output_option
def promote(connection: Connection, output: Output, name: str, topics: tuple[str, ...], now: bool, wait_s: float) -> None:
    """Make copies writable: they take the rest from the source, abort open transactions, and leave the link for good.

    Stop the writers of the source first: the copy does not get records that are written there later.
    """
    from barnabas.cli.broker_connections import Brokers
    from barnabas.cli.mirror_requests import GROUPS_LATE, promote_copies, view

    with Brokers(connection) as brokers:
        copies = view(brokers, name).topics
        unknown = sorted(set(topics) - set(copies))
        if unknown:
            raise BadInput(f"not copies of mirror link {name}: {', '.join(unknown)}")
        wanted = list(dict.fromkeys(topics)) if topics else copies
        if not wanted:
            raise Failure(f"mirror link {name} has no copies")
        promoted = promote_copies(brokers, name, wanted, now=now, wait_s=wait_s)
    ready = promoted.partitions
    if not promoted.has_groups:
        click.echo(GROUPS_LATE, err=True)
    missing = None if any(each.source_end_offset < 0 for each in ready) else sum(each.lag for each in ready)
    if now and not output.as_json:
        output.table([_missing_row(each) for each in ready if each.lag], MISSING, empty="nothing is known to be missing")
    text = "an unknown number of records is missing" if missing is None else f"{missing} records are missing"
    rows = [_missing_row(each) for each in ready]
    data = {"topics": wanted, "records_missing": missing, "partitions": rows}
    output.done(f"promoted {', '.join(wanted)}" + (f"; {text}" if now else ""), data)


def _missing_row(each: PartitionStatus) -> dict[str, Any]:
    is_known = each.source_end_offset >= 0
    return {
        "topic": each.topic,
        "partition": each.partition,
        "first": each.copied_end_offset,
        "source_end": each.source_end_offset if is_known else UNKNOWN,
        "missing": each.lag if is_known else UNKNOWN,
        "behind": f"{each.lag_ms / 1000:.1f} s",
        "silent": f"{each.silent_ms / 1000:.1f} s" if each.silent_ms >= 0 else UNKNOWN,
    }


@mirror.command("migrate")
@click.argument("name", metavar="LINK")
@click.option("--cut-over", is_flag=True, help="Promote all copies once nobody writes to the source any more.")
@click.option("--max-lag", type=click.IntRange(0, 1_000_000_000), default=1000, show_default=True, metavar="RECORDS",
              help="The copies count as caught up once all together lack no more records than that.")  # fmt: skip
@click.option("--quiet", "quiet_s", type=TIMEOUT, default=6.0, show_default=True, metavar="SECONDS",
              help="Promote after no record has come to the source for so long; offsets of groups follow in that time.")  # fmt: skip
@click.option("--even-if-written", is_flag=True, help="Promote although the source is written to; later records stay there.")
@wait_option(3600.0, "Seconds to wait for each step.")
@connection_options
@output_option
def migrate(
    connection: Connection, output: Output, name: str, cut_over: bool, max_lag: int, quiet_s: float, even_if_written: bool,
    wait_s: float,
) -> None:  # fmt: skip
    """Leave the source for good: wait until the copies have all its records, and with --cut-over promote them.

    Nobody stops the writers of the source but you: the command promotes only after the source has been quiet.
    """
    from barnabas.cli.broker_connections import Brokers
    from barnabas.cli.mirror_migrate import Migration

    with Brokers(connection) as brokers:
        run = Migration(brokers, name, wait_s, lambda line: click.echo(line, err=output.as_json))
        found = run.catch_up(max_lag)
        if not cut_over:
            output.done("stop the writers of the source, and repeat the command with --cut-over", {"topics": found.topics})
            return
        click.echo("stop the writers of the source now, if they are not stopped yet", err=output.as_json)
        since_s = time.monotonic() if even_if_written else run.wait_quiet(quiet_s)
        done = run.promote(found.topics, since_s)
    text = f"cut over {', '.join(done.topics)} in {done.seconds:.1f} s: start the writers on this cluster"
    output.done(text, {"topics": done.topics, "seconds": round(done.seconds, 3)})


@mirror.command("failback")
@topic_options("All topics that the link's patterns match and that were promoted in its source.")
@click.option("--dry-run", is_flag=True, help="Only print what the source does not have.")
@wait_option(60.0, "Seconds to wait for each step.")
@connection_options
@output_option
def failback(connection: Connection, output: Output, name: str, topics: tuple[str, ...], dry_run: bool, wait_s: float) -> None:
    """Make topics of an old site copies of the site that took over: save and cut off what that site does not have, then follow it.

    Run it on the old site, with a link whose source is the site where the topics were promoted. The records that are cut off are saved in
    TOPIC.lost-TIME. A run that was interrupted is continued by the same command.
    """
    from barnabas.cli.mirror_failback import Failback

    with Failback(connection, name, wait_s, lambda line: None if output.as_json else click.echo(line)) as run:
        run.require_names(topics)
        wanted = list(dict.fromkeys(topics)) if topics else run.candidates()
        wanted = run.inspect(wanted, only_promoted=not topics)
        if not wanted:
            raise Failure(f"mirror link {name} has no topics to fail back")
        if dry_run:
            fresh = [topic for topic, state in run.states(wanted).items() if state == "inspecting"]
            parts = run.beyond(fresh)
            run.detach(fresh)
            output.table([_part_row(each) for each in parts], LOST, empty="nothing is to be cut off")
            return
        parts = run.compare(wanted)
        run.save(parts)
        moved, busy = run.move_groups_back(parts)
        output.table([_part_row(each) for each in parts], LOST, empty="nothing is to be cut off")
        run.cut(wanted)
    if not output.as_json:
        click.echo(f"{', '.join(wanted)} follow mirror link {name}")
        if moved:
            click.echo(f"{moved} committed offsets of groups were moved back")
        if busy:
            click.echo(f"groups with members, whose consumers find out themselves: {', '.join(busy)}")


def _part_row(part: LostPart) -> dict[str, Any]:
    return {
        "topic": part.topic,
        "partition": part.partition,
        "common": part.common,
        "end": part.end,
        "beyond": part.end - part.common,
        "saved": UNKNOWN if part.records is None else part.records,
        "aborted": UNKNOWN if part.records is None else part.aborted,
        "saved_in": part.saved_in,
    }


@mirror.command("delete")
@click.argument("name", metavar="LINK")
@connection_options
@output_option
def delete(connection: Connection, output: Output, name: str) -> None:
    """Delete a link that has no copies: promote or delete them first."""
    from barnabas.cli.broker_connections import Brokers
    from barnabas.cli.mirror_requests import delete_link

    with Brokers(connection) as brokers:
        delete_link(brokers, name)
    output.done(f"deleted mirror link {name}", {"link": name})
