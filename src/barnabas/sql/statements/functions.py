"""CREATE, DROP and SHOW FUNCTION.

A function in Python is code that servers run. So its creation needs the right ALTER on the cluster, besides the right to write the topic of
functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from barnabas.functions.definition import PYTHON, Function, Stored
from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.catalog.function_store import Functions
from barnabas.sql.dialect import Statement, has_syntax, parse, statement_of
from barnabas.sql.interface import Notice, Result, SqlError
from barnabas.sql.results import Done
from barnabas.sql.statements.dropping import drop_with_users
from barnabas.sql.statements.function_text import Reader, argument_of, function_of
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.select import checked
from barnabas.sql.states import DEPENDENT, DUPLICATE_FUNCTION, INVALID_FUNCTION, UNDEFINED_FUNCTION, not_supported
from barnabas.sql.views.dependents import kind_of

SHOWN = ("name", "arguments", "returns", "language", "definition")


def create(session: Host, statement: Statement) -> Ready:
    """CREATE [OR REPLACE] FUNCTION [IF NOT EXISTS] name (arguments) RETURNS type …"""
    reader = Reader(statement, 1)
    replaces = reader.takes("OR", "REPLACE")
    for word in ("TEMP", "TEMPORARY"):
        if reader.word == word:
            raise not_supported(
                f"CREATE {word} FUNCTION is not supported", statement.position(reader.at), "leave the word out, and DROP it later"
            )
    if reader.word == "AGGREGATE":
        raise not_supported("CREATE AGGREGATE FUNCTION is not supported", statement.position(reader.at))
    reader.needs("FUNCTION")
    if_not_exists = reader.takes("IF", "NOT", "EXISTS")
    function = function_of(reader)
    _check_name(session, function.name)
    if function.language != PYTHON:
        _check_body(session, function)

    def run(_: Sequence[object]) -> Result:
        session.check_writable()
        if function.language == PYTHON:
            session.check_code()
        if not _write(session, function, replaces=replaces, if_not_exists=if_not_exists):
            session.notify(Notice(f"function {function.signature} already exists, skipping", sqlstate=DUPLICATE_FUNCTION))
        return Done("CREATE FUNCTION")

    return Ready(statement.text, run)


def _check_name(session: Host, name: str) -> None:
    """Raises SqlError for the name of a function that has a syntax of its own. Other built-in functions give way to those of users."""
    cursor = session.planner()
    try:
        found = cursor.execute(
            "SELECT count(*) FROM duckdb_functions() WHERE function_name = lower(?) AND function_type = 'aggregate'", [name]
        ).fetchone()
    finally:
        cursor.close()
    if found[0] or has_syntax(name) or name.startswith(("__", "pg_")):
        raise SqlError(DUPLICATE_FUNCTION, f'the function "{name}" is built in', hint="give the function another name")


def _check_body(session: Host, function: Function) -> None:
    """Whether a body in SQL is right: a call with nulls is checked. Raises SqlError."""
    nulls = ", ".join(f"NULL::{each.kind}" for each in function.arguments)
    text = f"SELECT * FROM __body({nulls})" if function.returns is None else f"SELECT __body({nulls})"
    tree = parse(statement_of(text))
    found, used = session.routines.alone(function, "__body").expanded(tree)
    if function.digest not in {each.digest for each in used}:
        raise SqlError(INVALID_FUNCTION, f"the function {function.name} cannot be called")
    plan = checked(session, found, function.body, with_pending=False)
    if function.returns is None and len(plan.schema) != len(function.columns):
        raise SqlError(
            INVALID_FUNCTION, f"return type mismatch in function {function.signature}",
            detail=f"The body gives {len(plan.schema)} columns, and RETURNS TABLE has {len(function.columns)}.",
        )  # fmt: skip


def _write(session: Host, function: Function, *, replaces: bool, if_not_exists: bool) -> bool:
    """Write the definition; False if another one was there and stays. Raises SqlError."""
    session.definitions.refresh(session.running, max_age_s=0)
    tables = session.definitions.tables
    already = False

    def decide(stored: Functions) -> Mapping[str, Stored | None]:
        nonlocal already
        there = stored.get(function.signature)
        already = there is not None and not replaces
        if already and if_not_exists:
            return {}
        if already:
            raise SqlError(
                DUPLICATE_FUNCTION, f"function {function.signature} already exists", hint="CREATE OR REPLACE FUNCTION replaces it"
            )
        if there is None:
            _check_other_forms(stored, function)
            return {function.signature: Stored(function)}
        if there.function.shown_result != function.shown_result:
            raise SqlError(
                INVALID_FUNCTION,
                "cannot change return type of existing function",
                hint=f"Use DROP FUNCTION {function.signature} first.",
            )
        return {} if there.function == function else {function.signature: _replaced(there, function, tables)}

    session.functions.change(session.client, session.running, decide)
    if replaces:
        _tell_views(session, function, tables)
    return not already


def _check_other_forms(stored: Functions, function: Function) -> None:
    for each in stored.values():
        other = each.function
        is_same = other.name.lower() == function.name.lower()
        if is_same and other.least <= len(function.arguments) and function.least <= len(other.arguments):
            raise SqlError(
                DUPLICATE_FUNCTION, f"function {other.signature} takes as many arguments as {function.signature}",
                hint="functions of one name differ in the number of their arguments",
            )  # fmt: skip


def _replaced(there: Stored, function: Function, tables: Mapping[str, TableDefinition]) -> Stored:
    """The record with another definition; earlier ones stay as long as materialized views use them."""
    digests = {
        digest
        for each in tables.values()
        if each.view is not None and each.view.is_materialized
        for _, digest in each.view.functions
    }
    kept = tuple(each for each in (there.function, *there.kept) if each.digest in digests and each.digest != function.digest)
    return Stored(function, kept)


def _tell_views(session: Host, function: Function, tables: Mapping[str, TableDefinition]) -> None:
    """Views that keep the earlier definition."""
    for each in tables.values():
        used = dict(each.view.functions) if each.view is not None and each.view.is_materialized else {}
        if used.get(function.signature, function.digest) != function.digest:
            name = each.name
            session.notify(
                Notice(
                    f'the materialized view "{name}" keeps the function as it was',
                    hint=f"CREATE OR REPLACE MATERIALIZED VIEW {name} AS … takes this one",
                )
            )


def drop(session: Host, statement: Statement) -> Ready:
    """DROP FUNCTION [IF EXISTS] name [(types)], … [CASCADE | RESTRICT]."""
    reader = Reader(statement, 2)
    if_exists = reader.takes("IF", "EXISTS")
    wanted = [_wanted(reader)]
    while reader.takes(","):
        wanted.append(_wanted(reader))
    cascades = reader.takes("CASCADE")
    if not cascades:
        reader.takes("RESTRICT")
    if not reader.is_done:
        raise reader.fault()

    def run(_: Sequence[object]) -> Result:
        session.check_writable()
        session.functions.refresh(session.running, max_age_s=0)
        session.definitions.refresh(session.running, max_age_s=0)
        for name, signature in wanted:
            function = _found(session, name, signature, if_exists=if_exists)
            if function is None:
                continue
            if function.language == PYTHON:
                session.check_code()
            _drop_users(session, function, cascades=cascades)
            session.functions.change(session.client, session.running, partial(_without, function.signature))
        return Done("DROP FUNCTION")

    return Ready(statement.text, run)


def _without(signature: str, stored: Functions) -> Mapping[str, Stored | None]:
    return {signature: None} if signature in stored else {}


def _wanted(reader: Reader) -> tuple[str, str | None]:
    """The name, and the signature if the types are given."""
    name = reader.name()
    if reader.is_done or reader.word != "(":
        return name, None
    kinds = [argument_of(reader.statement, *part).shown for part in reader.enclosed()]
    return name, f"{name}({', '.join(kinds)})"


def _found(session: Host, name: str, signature: str | None, *, if_exists: bool) -> Function | None:
    functions = session.functions.named(name)
    fitting = [each for each in functions if signature is None or each.signature.lower() == signature.lower()]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise SqlError(
            "42725", f'function name "{name}" is not unique', hint=f"name the types: DROP FUNCTION {fitting[0].signature}"
        )
    if if_exists:
        session.notify(Notice(f"function {signature or name} does not exist, skipping"))
        return None
    there = ", ".join(each.signature for each in functions)
    raise SqlError(
        UNDEFINED_FUNCTION,
        f"function {signature or name} does not exist",
        hint=f"there is {there}" if there else "SHOW FUNCTIONS lists them",
    )


def _drop_users(session: Host, function: Function, *, cascades: bool) -> None:
    """Drop the views that call a function. Raises SqlError 2BP01 if there are some and it does not cascade."""
    tables = session.definitions.tables
    users = [name for name, each in tables.items() if each.view is not None and function.signature in dict(each.view.functions)]
    if users and not cascades:
        lines = [f"{kind_of(tables[each])} {each} depends on function {function.signature}" for each in users]
        raise SqlError(
            DEPENDENT, f"cannot drop function {function.signature} because other objects depend on it: {', '.join(users)}",
            detail="\n".join(lines), hint="Use DROP … CASCADE to drop the dependent objects too.",
        )  # fmt: skip
    for each in users:
        if each in session.definitions.tables:
            drop_with_users(session, each)


def listed(session: Host) -> list[tuple[str | None, ...]]:
    """The rows of SHOW FUNCTIONS."""
    session.functions.refresh(session.running, max_age_s=0)
    found = sorted((each.function for each in session.functions.stored.values()), key=lambda each: each.signature)
    return [(each.name, each.shown_arguments, each.shown_result, each.language, each.body) for each in found]
