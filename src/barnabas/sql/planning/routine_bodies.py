"""Bodies of users' functions in SQL, with arguments in place of their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from barnabas.functions.definition import Function
from barnabas.sql.interface import SqlError

ROW = "_arguments"  # the row of arguments beside a body


def alone(body: Any) -> Any:
    """The only output of a query that has nothing else; None for every other query."""
    has_more = any(value for name, value in body.args.items() if name not in ("expressions", "kind"))
    if (
        not isinstance(body, exp.Select)
        or has_more
        or len(body.expressions) != 1
        or body.find(exp.AggFunc, exp.Window, exp.Unnest)
    ):
        return None
    return body.expressions[0].unalias().pop()


def outputs(inner: Any) -> Sequence[str]:
    """The names of the columns of a subquery or a common table expression."""
    query = inner.this
    return [each.alias_or_name for each in query.selects] if isinstance(query, exp.Query) else ()


def rename_tables(function: Function, body: Any, tables: Sequence[Any]) -> None:
    """Give the tables of a body names that no table around it has."""
    names: dict[str, str] = {}
    for table in tables:
        old = table.alias_or_name
        new = names.setdefault(old.lower(), f"_{function.name}_{old}")
        alias = table.args.get("alias") or exp.TableAlias()
        alias.set("this", exp.to_identifier(new, quoted=True))
        table.set("alias", alias)
    for column in body.find_all(exp.Column):
        if column.table.lower() in names:
            column.set("table", exp.to_identifier(names[column.table.lower()], quoted=True))


def is_free(argument: Any, taken: set[str], around: set[str]) -> bool:
    """Whether an argument means the same within a body with these columns and tables."""
    if argument.find(exp.AggFunc, exp.Window, exp.Query, exp.Anonymous) is not None:
        return False
    columns = argument.find_all(exp.Column)
    return all(each.table.lower() not in around if each.table else each.name.lower() not in taken for each in columns)


def substituted(body: Any, function: Function, taken: set[str], values: Sequence[Any] | None) -> Any:
    """The body with the arguments in place of their names and numbers: the values, or columns of the row beside it."""
    names = {each.name.lower(): place for place, each in enumerate(function.arguments) if each.name}
    holder = exp.Tuple(expressions=[body])
    for node in list(holder.find_all(exp.Column, exp.Parameter)):
        place = _argument_at(node, function, names, taken)
        if place is None:
            continue
        if not 0 <= place < len(function.arguments):
            raise SqlError("42P02", f"there is no parameter ${place + 1} in {function.signature}")
        made: Any = exp.column(f"_{place}", table=ROW) if values is None else exp.Paren(this=values[place].copy())
        if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
            made = exp.alias_(made, node.name or f"_{place}", quoted=True)
        node.replace(made)
    return holder.expressions[0].pop()


def _argument_at(node: Any, function: Function, names: Mapping[str, int], taken: set[str]) -> int | None:
    if isinstance(node, exp.Parameter):
        return int(node.name) - 1 if node.name.isdigit() else None
    if node.table:
        return names.get(node.name.lower()) if node.table.lower() == function.name.lower() else None
    return None if node.name.lower() in taken else names.get(node.name.lower())


def beside(body: Any, arguments: Sequence[Any]) -> Any:
    """The body, with a row of the arguments that it sees."""
    row = exp.select(*(exp.alias_(each, f"_{place}") for place, each in enumerate(arguments))).subquery(ROW)
    inner = exp.Lateral(this=exp.Subquery(this=body), alias=exp.TableAlias(this=exp.to_identifier("_body")))
    return exp.select("_body.*").from_(row).join(inner, join_type="cross")
