"""SET, SHOW, RESET, DISCARD, transactions without rows, and the statements that a Postgres client sends out of habit."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from barnabas.sql.catalog.definitions import PUBLIC
from barnabas.sql.dialect import Statement
from barnabas.sql.interface import SqlError
from barnabas.sql.results import Done, Listing
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready, done
from barnabas.sql.statements.transaction_control import modes_of
from barnabas.sql.states import INVALID_PARAMETER, UNDEFINED_OBJECT, not_supported, syntax_error
from barnabas.sql.zones import zone_of_interval


def set_parameter(session: Host, statement: Statement, _: Any) -> Ready:
    """SET [SESSION | LOCAL] name {TO | =} value, SET TIME ZONE, SET NAMES, SET TRANSACTION."""
    at, is_local = 1, False
    if statement.word(at) in ("SESSION", "LOCAL") and statement.word(at + 1) not in ("TO", "="):
        is_local, at = statement.word(at) == "LOCAL", at + 1
    if statement.word(at) in ("TRANSACTION", "CHARACTERISTICS"):
        return _set_modes(session, statement, at)
    if statement.word(at) in ("ROLE", "AUTHORIZATION"):
        raise not_supported(f"SET {statement.word(at)} is not supported", statement.position(at), "log in as that user")
    name, at = _name(statement, at)
    if name == "time zone" or name == "names":
        pass
    elif statement.word(at) in ("TO", "="):
        at += 1
    else:
        raise syntax_error("SET needs a value: SET name = value", statement.position(at))
    value = _zone(statement, at) if name == "time zone" else _value(statement, at)
    is_local = is_local or name == "transaction_read_only"

    def run() -> None:
        session.settings.set(name, value, is_local=is_local)

    return done(statement.text, "SET", run)


def use(session: Host, statement: Statement, _: Any) -> Ready:
    """USE [SCHEMA | DATABASE | CATALOG] name: the schema whose tables need no schema before their names."""
    at = 2 if statement.word(1) in ("SCHEMA", "DATABASE", "CATALOG", "NAMESPACE") and len(statement.tokens) > 2 else 1
    if len(statement.tokens) != at + 1:
        raise syntax_error("the statement is USE schema", statement.position(at))
    name = str(statement.tokens[at].text)
    wanted = next((each for each in (name, name.lower()) if each in session.definitions.schemas), None)
    if wanted is None:
        session.definitions.refresh(session.running, max_age_s=0)
        wanted = next((each for each in (name, name.lower()) if each in session.definitions.schemas), None)
    if wanted is None and name.lower() not in (PUBLIC, "default", session.caller.database.lower()):
        raise SqlError(
            "3F000", f'schema "{name}" does not exist', position=statement.position(at), hint="SHOW SCHEMAS lists them"
        )  # fmt: skip
    path = PUBLIC if wanted is None else f'"{wanted}", {PUBLIC}'
    return done(statement.text, "SET", lambda: session.settings.set("search_path", path))


def _set_modes(session: Host, statement: Statement, at: int) -> Ready:
    prefix = "transaction_"
    if statement.word(at) == "CHARACTERISTICS":
        if (statement.word(at + 1), statement.word(at + 2)) != ("AS", "TRANSACTION"):
            raise syntax_error("the statement is SET SESSION CHARACTERISTICS AS TRANSACTION modes", statement.position(at + 1))
        prefix, at = "default_transaction_", at + 2
    modes = modes_of(statement, at + 1)

    def run() -> None:
        for name, value in modes.items():
            session.settings.set(prefix + name, value)

    return done(statement.text, "SET", run)


_QUOTED_NAME = re.compile(r"[a-z_][\w.-]*")  # SET 'auto.offset.reset' of ksqlDB, 'execution.runtime-mode' of Flink


def _name(statement: Statement, at: int) -> tuple[str, int]:
    first = str(statement.tokens[at].text).lower() if at < len(statement.tokens) else ""
    if statement.word(at) == "" and not _QUOTED_NAME.fullmatch(first):
        raise syntax_error("the name of a parameter is missing", statement.position(at), "SHOW ALL lists them")
    if first == "time" and statement.word(at + 1) == "ZONE":
        return "time zone", at + 2
    name = first
    at += 1
    while at + 1 < len(statement.tokens) and statement.tokens[at].token_type == TokenType.DOT:
        name += "." + statement.word(at + 1).lower()
        at += 2
    return name, at


def _value(statement: Statement, at: int) -> str | None:
    parts = statement.tokens[at:]
    if not parts:
        raise syntax_error("a value is missing", statement.position(at))
    if len(parts) == 1 and statement.word(at) == "DEFAULT":
        return None
    texts = []
    for token in parts:
        if token.token_type == TokenType.COMMA:
            texts.append(",")
        else:
            texts.append(str(token.text))
    return "".join(texts).replace(",", ", ")


def _zone(statement: Statement, at: int) -> str | None:
    """The value of SET TIME ZONE: a name, a number of hours, INTERVAL '+02:00' HOUR TO MINUTE, LOCAL or DEFAULT."""
    if len(statement.tokens) == at + 1 and statement.word(at) == "LOCAL":
        return None
    if statement.word(at) != "INTERVAL" or len(statement.tokens) < at + 2:
        return _value(statement, at)
    text, units = str(statement.tokens[at + 1].text), [statement.word(place) for place in range(at + 2, len(statement.tokens))]
    if units not in ([], ["HOUR"], ["HOUR", "TO", "MINUTE"]):
        raise syntax_error("a zone is INTERVAL '+02:00' HOUR TO MINUTE", statement.position(at + 2))
    try:
        return zone_of_interval(text, "".join(units[:1])).name
    except ValueError:
        raise SqlError(
            INVALID_PARAMETER,
            f'invalid value for parameter "TimeZone": "INTERVAL \'{text}\'"',
            position=statement.position(at + 1),
        ) from None


def reset(session: Host, statement: Statement, _: Any) -> Ready:
    """RESET name | ALL."""
    if statement.word(1) == "ALL":
        return done(statement.text, "RESET", session.settings.reset)
    name, _at = _name(statement, 1)
    return done(statement.text, "RESET", lambda: session.settings.set(name, None))


def show(session: Host, statement: Statement, _: Any) -> Ready:
    """SHOW name | ALL; SHOW TABLES and the like are in `inspection`."""
    if statement.word(1) == "ALL":
        return Ready(statement.text, lambda _: _all(session), schema=_ALL)
    words = [str(token.text) for token in statement.tokens[1:]]
    name = "".join(words) if "." in words else " ".join(words)
    if session.settings.get(name) is None:
        raise SqlError(
            UNDEFINED_OBJECT,
            f'unrecognized configuration parameter "{name}"',
            position=statement.position(1),
            hint="SHOW ALL lists them; there are also SHOW TABLES, VIEWS, COLUMNS FROM, CREATE TABLE, DATABASES and SCHEMAS",
        )
    title = name.lower().replace("time zone", "TimeZone").replace(" ", "_")
    schema = pa.schema([pa.field(title, pa.string())])
    return Ready(statement.text, lambda _: Listing.of("SHOW", {title: [session.settings.get(name)]}), schema=schema)


_ALL = pa.schema([pa.field(name, pa.string()) for name in ("name", "setting", "description")])


def _all(session: Host) -> Listing:
    names, values = zip(*session.settings, strict=True)
    return Listing.of("SHOW", {"name": names, "setting": values, "description": [""] * len(names)})


def discard(session: Host, statement: Statement, _: Any) -> Ready:
    """DISCARD ALL | PLANS | TEMP | SEQUENCES."""
    word = statement.word(1)
    if word not in ("ALL", "PLANS", "TEMP", "TEMPORARY", "SEQUENCES"):
        raise syntax_error("DISCARD needs ALL, PLANS, SEQUENCES or TEMP", statement.position(1))
    actions = {"ALL": session.forget, "TEMP": session.drop_temporary, "TEMPORARY": session.drop_temporary}
    return done(statement.text, f"DISCARD {word}", actions.get(word))


def nothing(tag: str) -> Any:
    """A statement that has no meaning here and does no harm: there is nothing to do."""

    def make(_: Host, statement: Statement, __: Any) -> Ready:
        return done(statement.text, tag)

    return make


def empty(statement: Statement) -> Ready:
    """The statement without words."""
    return Ready(statement.text, lambda _: Done(""))
