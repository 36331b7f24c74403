"""Questions of a query about its session: the user, the database, a setting. Such calls become literals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from barnabas.sql.interface import SqlError
from barnabas.sql.settings import NAMES
from barnabas.sql.states import NOT_SUPPORTED, UNDEFINED_OBJECT

Change = tuple[str, str | None, bool]  # a setting, its value, and whether it ends with the transaction
Setting = Callable[[str], str | None]


def answer_calls(tree: exp.Expression, facts: Mapping[str, Any], setting: Setting) -> list[Change]:
    """Replace calls of functions without arguments by `facts`, `current_setting`, and `set_config`, whose changes are returned.

    Raises:
        SqlError: there is no such setting, or `set_config` has no literals.
    """
    changes: list[Change] = []
    for node in list(tree.walk()):
        if isinstance(node, (exp.Column, exp.Table)) and node.args.get("db") and _is_qualified(node):
            node.set("db", None)
            node.set("catalog", None)
        if isinstance(node, exp.Dot) and isinstance(node.this, exp.Identifier) and node.this.name.lower() in _SCHEMAS:
            node = _without_schema(node)
        name = _called(node)
        if name is None:
            continue
        if name == "current_setting":
            _replace(node, _setting(node, setting), name)
        elif name == "set_config":
            changes.append(_change(node))
            _replace(node, exp.cast(_value(changes[-1][1]), "text"), name)
        elif name in facts:
            _replace(node, _schemas(node, facts[name]) if name == "current_schemas" else _value(facts[name]), name)
    return changes


_SCHEMAS = ("pg_catalog", "information_schema")


def _is_qualified(node: Any) -> bool:
    """Whether a column names its table with the schema, or a function stands in FROM with its schema."""
    return isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier)


def _without_schema(node: exp.Dot) -> Any:
    """`pg_catalog.f(x)` as `f(x)`."""
    inner: Any = node.expression
    syntax = _SYNTAX.get(inner.name.lower()) if isinstance(inner, exp.Anonymous) else None
    inner = inner if syntax is None else syntax()
    inner.pop()
    node.replace(inner)
    return inner


_SYNTAX: dict[str, Callable[[], Any]] = {
    "version": exp.CurrentVersion,
    "current_schema": exp.CurrentSchema,
    "current_database": exp.CurrentDatabase,
}


def _called(node: Any) -> str | None:
    match node:
        case exp.CurrentUser():
            return "current_user"
        case exp.CurrentSchema():
            return "current_schema"
        case exp.Anonymous():
            return str(node.this).lower()
        case exp.CurrentSchemas():
            return "current_schemas"
        case exp.CurrentCatalog():
            return "current_catalog"
        case exp.SessionUser():
            return "session_user"
        case exp.CurrentDatabase():
            return "current_database"
        case exp.CurrentVersion():
            return "version"
        case exp.Column() if not node.table and isinstance(node.this, exp.Identifier) and not node.this.quoted:
            name = node.name.lower()
            return name if name in ("current_catalog", "current_role", "session_user", "user") else None
    return None


def _replace(node: Any, value: Any, name: str) -> None:
    target: Any = node
    if isinstance(target.parent, exp.Select) and target.arg_key == "expressions":
        value = exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))
    target.replace(value)


def _change(node: Any) -> Change:
    arguments = node.expressions
    if len(arguments) != 3 or not all(isinstance(each, (exp.Literal, exp.Null)) for each in arguments[:2]):
        raise SqlError(NOT_SUPPORTED, "set_config needs literals", hint="SET name = value")
    value = None if isinstance(arguments[1], exp.Null) else arguments[1].name
    return arguments[0].name, value, arguments[2].sql().upper() == "TRUE"


def _setting(node: Any, setting: Setting) -> exp.Expression:
    arguments = node.expressions
    if arguments and not isinstance(arguments[0], exp.Literal):
        return _setting_named_by(arguments[0], setting)
    name = arguments[0].name if arguments else ""
    found = setting(name)
    if found is None and not (len(arguments) > 1 and arguments[1].sql().upper() == "TRUE"):
        raise SqlError(UNDEFINED_OBJECT, f'unrecognized configuration parameter "{name}"')
    return exp.cast(_value(found), "text")


def _setting_named_by(name: Any, setting: Setting) -> exp.Expression:
    """The setting whose name is only known when the statement runs."""
    named = exp.Lower(this=exp.cast(name.copy(), "text"))
    known = [exp.If(this=exp.convert(each), true=exp.cast(_value(setting(each)), "text")) for each in NAMES]
    unknown = exp.func("error", exp.convert("unrecognized configuration parameter"))
    return exp.Case(this=named, ifs=known, default=exp.cast(unknown, "text"))


def _schemas(node: Any, path: Sequence[str]) -> Any:
    """`current_schemas(false)`; with `true` also the schema of Postgres' catalogue, which is looked at first."""
    argument = node.this if isinstance(node, exp.CurrentSchemas) else next(iter(node.expressions), None)
    has_implicit = isinstance(argument, exp.Boolean) and argument.this
    return exp.cast(_value([*(["pg_catalog"] if has_implicit else []), *path]), "text[]")


def _value(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return exp.Array(expressions=[_value(each) for each in value])
    if isinstance(value, exp.Expression):
        return value.copy()
    return exp.convert(value)
