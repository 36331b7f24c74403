"""Calls of users' functions as parts of a query: their arguments, and their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from barnabas.functions.definition import PYTHON, Argument, Function
from barnabas.sql.dialect import WRITTEN
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.states import UNDEFINED_FUNCTION, not_supported, syntax_error

OWN = "own_function"  # the mark of a call of a function in Python


def arguments_of(function: Function, node: Any, parsed: Callable[[str], Any]) -> list[Any]:
    """The arguments in their order, cast to their types. Raises SqlError."""
    given: dict[str, Any] = {}
    for place, each in enumerate(node.expressions):
        is_named = isinstance(each, (exp.Kwarg, exp.PropertyEQ))
        if isinstance(each, exp.Star):
            raise syntax_error(f"function {function.signature} takes no *")
        if not is_named and len(given) < place:
            raise syntax_error("positional argument cannot follow named argument")
        name = each.this.name.lower() if is_named else str(place)
        places = [str(at) for at, one in enumerate(function.arguments) if one.name.lower() == name]
        key = (places[0] if places else name) if is_named else name
        if key in given or (is_named and not places):
            raise SqlError(UNDEFINED_FUNCTION, f'function {function.signature} has no argument "{name}" left')
        given[key] = each.expression if is_named else each
    made = []
    for place, one in enumerate(function.arguments):
        value = given.get(str(place))
        if value is None:
            if one.default is None:
                raise SqlError(UNDEFINED_FUNCTION, f'the argument "{one.name}" of {function.signature} is missing')
            value = parsed(f"SELECT {one.default}").expressions[0]
        made.append(_cast(value.copy(), one))
    return made


def _cast(value: Any, argument: Argument) -> Any:
    return exp.cast(value, argument.kind, dialect="duckdb")


def has_schema(node: Any) -> bool:
    """Whether a call is written `public.f(…)`."""
    parent = node.parent
    return isinstance(parent, exp.Dot) and parent.expression is node and parent.this.name.lower() == "public"


def python_call(function: Function, arguments: Sequence[Any], node: Any) -> Any:
    """DuckDB's call of a function; one without arguments gets one, whose rows count."""
    made = exp.Anonymous(this=function.call, expressions=list(arguments) or [exp.Literal.number(0)])
    made.meta.update(node.meta)
    made.meta.update({OWN: True, WRITTEN: function.name})
    if function.returns is not None and function.returns.kind == "JSON":
        return exp.cast(made, "JSON", dialect="duckdb")
    return made


def each_row(function: Function, made: Any, node: Any) -> Any:
    """A function that gives rows, in a SELECT: the only column, or a struct."""
    if function.language != PYTHON:
        raise not_supported(
            f"{function.name} gives rows, so it stands in FROM", position_in(node), f"SELECT * FROM {function.name}(…)"
        )
    found: Any = exp.Anonymous(this="unnest", expressions=[made])
    if len(function.columns) == 1:
        found = exp.Anonymous(this="struct_extract", expressions=[found, exp.Literal.string(function.columns[0].name)])
    return exp.alias_(found, function.name, quoted=True) if isinstance(node.parent, exp.Select) else found


def rows_of_call(function: Function, made: Any) -> Any:
    """A query over the rows that a call gives as a list."""
    inner = exp.select(exp.alias_(exp.Anonymous(this="unnest", expressions=[made]), "_r"))
    shown = []
    for each in function.columns:
        part: Any = exp.Anonymous(this="struct_extract", expressions=[exp.column("_r"), exp.Literal.string(each.name)])
        part = exp.cast(part, "JSON", dialect="duckdb") if each.kind == "JSON" else part
        shown.append(exp.alias_(part, each.name, quoted=True))
    return exp.select(*shown).from_(inner.subquery("_rows"))


def place_rows(table: Any, function: Function, made: Any, *, is_lateral: bool) -> None:
    """A function in FROM: its rows, or one row with its value. It may depend on the rows beside it."""
    if not isinstance(made, exp.Query):
        made = exp.select(exp.alias_(made, function.name, quoted=True))
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(function.name, quoted=True))
    alias = alias.copy()
    if not alias.args.get("columns"):
        names = [each.name for each in function.columns] or ([alias.name] if function.returns is not None else [])
        alias.set("columns", [exp.to_identifier(each, quoted=True) for each in names])
    found: Any = exp.Subquery(this=made, alias=alias)
    if is_lateral:
        found = exp.Lateral(this=exp.Subquery(this=made), alias=alias)
    for clause in ("joins", "laterals", "pivots", "sample"):
        if table.args.get(clause):
            found.set(clause, table.args[clause])
    table.replace(found)


def place_value(place: Any, function: Function, made: Any, node: Any) -> None:
    """The value of a function; as an output it has the function's name."""
    if isinstance(place.parent, exp.Select) and place.arg_key == "expressions":
        made = exp.alias_(made, str(node.meta.get(WRITTEN) or function.name), quoted=True)
    place.replace(made)
