"""The statements of the source, and times in the forms in which each kind of database compares them."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from barnabas.connect.plugins.databases.database import Database
from barnabas.connect.plugins.databases.table_name import TableName
from barnabas.connect.plugins.sql_source.position import Position
from barnabas.connect.plugins.sql_source.settings import Settings

SQLITE_FORM = "%Y-%m-%d %H:%M:%f"  # milliseconds


def statement_of(
    database: Database, settings: Settings, table: TableName | None, position: Position, end: datetime.datetime | None
) -> tuple[str, Sequence[Any]]:  # fmt: skip
    """The query of a poll and its parameters.

    Args:
        end: rows with this time or a later one are not read yet.
    """
    given = settings.query.replace("%", "%%") if database.mark == "%s" else settings.query
    base = f"SELECT * FROM {f'({given}) AS q' if table is None else database.table(table)}"
    number = database.name(settings.incrementing) if settings.incrementing else ""
    time = _time(database, settings.timestamps) if settings.timestamps else ""
    conditions, parameters = list[str](), list[Any]()
    if time:
        assert end is not None
        conditions.append(f"{time} < {database.mark}")
        parameters.append(_bound(database, settings, end))
    if time and position.time is not None:
        at = _bound(database, settings, position.time)
        if number and position.number is not None:
            conditions.append(f"(({time} = {database.mark} AND {number} > {database.mark}) OR {time} > {database.mark})")
            parameters += [at, position.number, at]
        else:
            conditions.append(f"{time} > {database.mark}")
            parameters.append(at)
    elif number and position.number is not None:
        conditions.append(f"{number} > {database.mark}")
        parameters.append(position.number)
    if number and not settings.raises_on_null:
        conditions.append(f"{number} IS NOT NULL")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    order = [each for each in (time, number) if each]
    sorted_by = f" ORDER BY {', '.join(order)}" if order else ""
    suffix = f" {settings.suffix}" if settings.suffix else ""
    return f"{base}{where}{sorted_by}{suffix}", parameters


def _time(database: Database, names: Sequence[str]) -> str:
    columns = database.names(names)
    chosen = f"COALESCE({columns})" if len(names) > 1 else columns
    return f"strftime('{SQLITE_FORM}', {chosen})" if database.address.kind == "sqlite" else chosen


def _bound(database: Database, settings: Settings, time: datetime.datetime) -> Any:
    """A time as a parameter. PostgreSQL's session has the zone of the config; the others compare times without a zone."""
    if database.address.kind == "postgresql":
        return time
    local = time.astimezone(ZoneInfo(settings.timezone)).replace(tzinfo=None)
    if database.address.kind == "sqlite":
        return local.isoformat(" ", "milliseconds")
    return local


def begin(database: Database, settings: Settings) -> None:
    """Let the session have the zone and the isolation level of the config."""
    if database.address.kind == "postgresql":
        database.run("SELECT set_config('timezone', %s, false)", (settings.timezone,))
    if settings.isolation != "DEFAULT":
        database.isolate(settings.isolation.replace("_", " "))


def end_of(database: Database, settings: Settings) -> datetime.datetime:
    """The time up to which rows are read: that of the database's clock, without the delay."""
    match database.address.kind:
        case "postgresql":
            [(now,)] = database.run("SELECT clock_timestamp()")
        case "mysql":
            [(now,)] = database.run("SELECT UTC_TIMESTAMP(6)")
            now = now.replace(tzinfo=datetime.UTC)
        case _:
            now = datetime.datetime.now(datetime.UTC)
    found: datetime.datetime = now - datetime.timedelta(milliseconds=settings.delay_ms)
    return found


def time_of(value: Any, settings: Settings) -> datetime.datetime | None:
    """The time in a row."""
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value)
        value = value.replace(microsecond=value.microsecond // 1000 * 1000)
    if value is not None and value.tzinfo is None:
        value = value.replace(tzinfo=ZoneInfo(settings.timezone))
    return None if value is None else value.astimezone(datetime.UTC)
