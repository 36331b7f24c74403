"""`barnabas dlq`: the records that connectors could not take: list, show, send again, delete."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.lazy import HELP_OPTIONS, Entry, LazyGroup
from barnabas.cli.offsets import DATETIME
from barnabas.cli.output import Output, output_option, print_fields
from barnabas.cli.patterns import parse_pattern
from barnabas.errors import BarnabasError, ConfigError

if TYPE_CHECKING:
    from barnabas.connect.letters.letter import Letter, Wanted
    from barnabas.connect.letters.topic import Letters

COMMANDS = {
    "list": Entry("dlq", "list_letters", "List the dead letters of TOPIC; without it, the topics that connectors write them to."),
    "show": Entry("dlq", "show", "Show dead letters whole: key, value, headers and what is said of them."),
    "redrive": Entry("dlq", "redrive", "Send dead letters again, to the topics that they come from."),
    "purge": Entry("dlq", "purge", "Delete dead letters."),
}
COLUMNS = {"place": "LETTER", "time": "TIME", "connector": "CONNECTOR", "stage": "STAGE", "from": "FROM", "key": "KEY",
           "cause": "CAUSE", "state": "STATE"}  # fmt: skip
TOPIC_COLUMNS = {"topic": "TOPIC", "connectors": "CONNECTORS"}
CONFIG_TOPIC = "connect-configs"
KEY_OF_TOPIC = "errors.deadletterqueue.topic.name"
MOST_LISTED = 100
MOST_CHARACTERS = 60
LIMIT = click.IntRange(1, 1_000_000_000)
PLACE = re.compile(r"\d{1,9}:\d{1,18}")
F = TypeVar("F", bound=Callable[..., Any])


@click.group(cls=LazyGroup, entries=COMMANDS, context_settings=HELP_OPTIONS)
def dlq() -> None:
    """List, show, send again and delete the records that connectors could not take."""


def _filters(command: F) -> F:
    """The options that say which letters are meant, as the argument `wanted`."""

    @click.option("--connector", metavar="NAME", help="Only those of this connector, or of this share group.")
    @click.option("--cause", metavar="REGEX", help="Only those whose cause has this regular expression.")
    @click.option("--stage", metavar="STAGE", help="Only those of a stage, such as VALUE_CONVERTER or TRANSFORMATION.")
    @click.option("--key", metavar="TEXT", help="Only those with this key.")
    @click.option("--since", type=DATETIME, metavar="TIME", help="Only those from this time on.")
    @click.option("--until", type=DATETIME, metavar="TIME", help="Only those before this time.")
    @click.option("--at", "places", multiple=True, metavar="PARTITION:OFFSET", help="Only this one; repeatable.")
    @functools.wraps(command)
    def wrapped(
        *, connector: str | None, cause: str | None, stage: str | None, key: str | None, since: int | None, until: int | None,
        places: tuple[str, ...], **others: Any,
    ) -> Any:  # fmt: skip
        from barnabas.connect.letters.letter import Wanted

        pattern = None if cause is None else parse_pattern(cause, "--cause")
        return command(
            wanted=Wanted(
                connector, pattern, stage, None if key is None else key.encode(), since, until, _places(places)
            ),
            **others,
        )  # fmt: skip

    return wrapped  # type: ignore[return-value]  # click has put its parameters on the function


def _places(texts: tuple[str, ...]) -> frozenset[str] | None:
    for each in texts:
        if not PLACE.fullmatch(each):
            raise BadInput(f"{each!r} is no PARTITION:OFFSET, such as 0:17")
    return frozenset(texts) or None


@contextmanager
def _opened(connection: Connection, topic: str) -> Iterator[Letters]:
    """Raises BadInput for what a user can mend, Failure for what the cluster refuses."""
    from barnabas.client.errors import ClientError
    from barnabas.connect.letters.topic import Letters
    from barnabas.errors import KafkaError

    connection.require_broker()
    try:
        letters = Letters(_settings(connection), topic)
    except (ConfigError, ValueError) as error:
        raise BadInput(str(error)) from None
    try:
        yield letters
    except (KafkaError, ClientError) as error:
        raise Failure(str(error)) from None
    except BarnabasError as error:
        raise BadInput(str(error)) from None
    finally:
        letters.close()


def _settings(connection: Connection) -> dict[str, str]:
    limit_ms = str(max(1, round(connection.timeout_s * 1000)))
    limits = {"client.id": "barnabas-cli", "request.timeout.ms": limit_ms, "default.api.timeout.ms": limit_ms}
    return {**limits, **connection.properties, "bootstrap.servers": connection.bootstrap}


@click.command("list")
@click.argument("topic", required=False)
@_filters
@click.option("--limit", type=LIMIT, default=MOST_LISTED, show_default=True, help="List at most so many.")
@click.option("--all", "handled", is_flag=True, help="Also those that were sent again or deleted.")
@connection_options
@output_option
def list_letters(
    connection: Connection, output: Output, topic: str | None, wanted: Wanted, limit: int, handled: bool
) -> None:  # fmt: skip
    """List the dead letters of TOPIC; without it, the topics that connectors write them to."""
    if topic is None:
        output.table(_topics(connection), TOPIC_COLUMNS, empty="no connector has a topic for dead letters")
        return
    rows: list[dict[str, Any]] = []
    with _opened(connection, topic) as letters:
        marks = letters.marks() if handled else {}
        for letter in letters.read(wanted, handled=handled):
            if len(rows) >= limit:
                break
            mark = marks.get(letter.place)
            rows.append(_row(letter) | {"state": None if mark is None else f"sent to {mark.to}" if mark.to else "deleted"})
    output.table(rows, COLUMNS, empty=f"{topic} has no such dead letters")


def _topics(connection: Connection) -> list[dict[str, Any]]:
    from barnabas.client.blocking import BlockingClient
    from barnabas.client.config import ClientConfig
    from barnabas.connect.runtime.source_offsets import records_of

    connection.require_broker()
    topics: dict[str, str] = {}
    with BlockingClient(ClientConfig.from_options({**_settings(connection), "isolation.level": "read_committed"})) as client:
        for record in records_of(client, CONFIG_TOPIC):
            key = bytes(record.key or b"").decode("utf-8", "replace")
            if key.startswith("connector-"):
                topics[key.removeprefix("connector-")] = _named(record.value)
    names = sorted({topic for topic in topics.values() if topic})
    return [{"topic": topic, "connectors": sorted(each for each, its in topics.items() if its == topic)} for topic in names]


def _named(value: Any) -> str:
    """The topic of dead letters that a connector's config has."""
    try:
        found = json.loads(bytes(value or b"{}"))
        return str(found.get("properties", {}).get(KEY_OF_TOPIC, ""))
    except (ValueError, AttributeError):
        return ""


def _row(letter: Letter) -> dict[str, Any]:
    from barnabas.cli.job import _time

    about = letter.about
    place = None if letter.origin is None else f"{letter.origin} {about.get('partition', '?')}:{about.get('offset', '?')}"
    return {
        "place": letter.place, "time": _time(letter.timestamp_ms), "connector": letter.connector, "stage": about.get("stage"),
        "from": place, "key": _text(letter.key), "cause": _short(letter.cause),
    }  # fmt: skip


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "backslashreplace")


def _short(text: str | None) -> str | None:
    return text if text is None or len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


@click.command("show")
@click.argument("topic")
@click.argument("letters", nargs=-1, required=True, metavar="PARTITION:OFFSET...")
@connection_options
@output_option
def show(connection: Connection, output: Output, topic: str, letters: tuple[str, ...]) -> None:
    """Show dead letters whole: key, value, headers and what is said of them."""
    from barnabas.connect.letters.letter import Wanted

    with _opened(connection, topic) as opened:
        found = list(opened.read(Wanted(places=_places(letters)), handled=True))
    if missing := sorted(set(letters) - {each.place for each in found}):
        raise BadInput(f"{topic} has no record {missing[0]}")
    shown = [_whole(each) for each in found]
    if output.as_json:
        output.json(shown)
        return
    for number, each in enumerate(shown):
        if number:
            click.echo()
        print_fields(each)


def _whole(letter: Letter) -> dict[str, Any]:
    headers = {name: _text(value) for name, value in letter.headers}
    about = {f"errors.{name}": text for name, text in letter.about.items()}
    return {**_row(letter), "cause": letter.cause, "value": _text(letter.value), "headers": headers, **about}


@click.command("redrive")
@click.argument("topic")
@_filters
@click.option("--to", metavar="TOPIC", help="Send them to this topic; by default to the one that each comes from.")
@click.option("--limit", type=LIMIT, metavar="N", help="Send at most so many.")
@click.option("--dry-run", is_flag=True, help="Only say how many would be sent.")
@connection_options
@output_option
def redrive(
    connection: Connection, output: Output, topic: str, wanted: Wanted, to: str | None, limit: int | None, dry_run: bool
) -> None:  # fmt: skip
    """Send dead letters again, to the topics that they come from.

    A letter is sent once, also if this command is killed and repeated.
    """
    with _opened(connection, topic) as letters:
        if dry_run:
            count = _count(letters, wanted, limit)
            output.done(f"would send {count} records of {topic}", {"would_send": count})
            return
        count = letters.redrive(wanted, to, limit)
    output.done(f"sent {count} records of {topic}", {"sent": count})


@click.command("purge")
@click.argument("topic")
@_filters
@click.option("--limit", type=LIMIT, metavar="N", help="Delete at most so many.")
@click.option("--dry-run", is_flag=True, help="Only say how many would be deleted.")
@click.option("--yes", is_flag=True, help="Delete all letters, if no option says which.")
@connection_options
@output_option
def purge(
    connection: Connection, output: Output, topic: str, wanted: Wanted, limit: int | None, dry_run: bool, yes: bool
) -> None:  # fmt: skip
    """Delete dead letters."""
    if wanted.is_all and limit is None and not (dry_run or yes):
        raise BadInput("this would delete all dead letters; --yes does it, and options such as --connector say which")
    with _opened(connection, topic) as letters:
        if dry_run:
            count = _count(letters, wanted, limit)
            output.done(f"would delete {count} records of {topic}", {"would_delete": count})
            return
        count = letters.purge(wanted, limit)
    output.done(f"deleted {count} records of {topic}", {"deleted": count})


def _count(letters: Letters, wanted: Wanted, limit: int | None) -> int:
    count = sum(1 for _ in letters.read(wanted))
    return count if limit is None else min(count, limit)
