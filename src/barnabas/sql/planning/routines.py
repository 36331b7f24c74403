"""Calls of users' functions in a query.

A call of a function in Python becomes a call of DuckDB's function `__f_…`, whose name tells the definition. A call of a function in SQL
becomes its body with the arguments in place.

Rules
  1. A function is chosen by its name, the number of arguments, and their types where several take so many (`overloads.py`).
     Each argument is cast to the type that the function declares.
  2. In a body without tables, arguments stand where their names stood. Otherwise they are columns of a row beside the body, so that no
     table of the body can take the names in them.
  3. A function that gives rows is a subquery in FROM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas import limits
from barnabas.functions.definition import PYTHON, Function
from barnabas.sql.dialect import OWN_NAME
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import OF_VIEW, tables_of
from barnabas.sql.planning.outputs import with_names
from barnabas.sql.planning.overloads import chosen
from barnabas.sql.planning.routine_bodies import alone as alone_in
from barnabas.sql.planning.routine_bodies import beside, is_free, outputs, rename_tables, substituted
from barnabas.sql.planning.routine_calls import (
    OWN,
    arguments_of,
    each_row,
    has_schema,
    place_rows,
    place_value,
    python_call,
    rows_of_call,
)
from barnabas.sql.states import LIMIT_EXCEEDED, TOO_COMPLEX, not_supported

Named = Callable[[str], Sequence[Function]]
Fields = Callable[[exp.Table], Sequence["pa.Field[Any]"]]  # the columns of a table; raises SqlError


class Routines:
    """The functions that a query may call.

    Args:
        named: the functions of a name.
        fields: the columns of a table.
        views: puts the queries of views in place of their names.
        parsed: the tree of a text.
    """

    def __init__(self, named: Named, fields: Fields, views: Callable[[Any], Any], parsed: Callable[[str], Any]) -> None:
        self._named, self._fields, self._views, self._parsed = named, fields, views, parsed

    def alone(self, function: Function, name: str) -> Routines:
        """The same with one function more, or in place of another. It also has a name of its own."""

        def named(wanted: str) -> Sequence[Function]:
            if wanted == name:
                return (function,)
            found = [each for each in self._named(wanted) if each.signature != function.signature]
            return [function, *found] if wanted.lower() == function.name.lower() else found

        return Routines(named, self._fields, self._views, self._parsed)

    def expanded(self, tree: Any) -> tuple[Any, tuple[Function, ...]]:
        """The query without users' functions in SQL, and the functions that it calls; the tree is changed. Raises SqlError."""
        found = _Found()
        holder = exp.Tuple(expressions=[tree])
        self._expand(holder, found, limits.MAX_FUNCTION_DEPTH)
        return holder.expressions[0].pop(), tuple(found.used.values())

    def _expand(self, tree: Any, found: _Found, depth: int) -> None:
        for node in reversed(list(tree.walk())):
            if not isinstance(node, exp.Anonymous) or node.meta.get(OWN):
                continue
            name = str(node.this).removeprefix(OWN_NAME)
            functions = self._named(name)
            if not functions:
                continue
            if not depth:
                most = limits.MAX_FUNCTION_DEPTH
                raise SqlError(TOO_COMPLEX, f"more than {most} functions call each other", hint="no function may call itself")
            function = chosen(name, functions, node, self._field_of)
            found.used[function.digest] = function
            self._replace(node, function, found, depth)

    def _replace(self, node: Any, function: Function, found: _Found, depth: int) -> None:
        if function.language != PYTHON:
            self._qualify(node)
        holder = exp.Tuple(expressions=arguments_of(function, node, self._parsed))
        self._expand(holder, found, depth - 1)  # a default may call a function
        arguments = [each.pop() for each in list(holder.expressions)]
        place = node.parent if has_schema(node) else node
        table = place.parent if isinstance(place.parent, (exp.Table, exp.Lateral)) and place.parent.this is place else None
        if function.language == PYTHON:
            made = python_call(function, arguments, node)
        else:
            made = self._inlined(function, arguments, found, depth)
            found.grow(made)
        if table is not None:
            if function.language == PYTHON and function.returns is None:
                made = rows_of_call(function, made)
            is_lateral = isinstance(table, exp.Lateral) or any(each.find(exp.Column) is not None for each in arguments)
            place_rows(table, function, made, is_lateral=is_lateral)
        elif function.returns is None:
            place.replace(each_row(function, made, node))
        else:
            place_value(place, function, made, node)

    def _qualify(self, node: Any) -> None:
        """Name the tables of the arguments' columns, where only one has such a column: a body may have columns of the same names."""
        select = node.find_ancestor(exp.Select)
        origin = select.args.get("from_") if select is not None else None
        if origin is None or not node.expressions:
            return
        items = [origin.this, *(each.this for each in select.args.get("joins") or [])]
        holders: dict[str, list[str]] = {}
        for item in items:
            for name in self._names(item):
                holders.setdefault(name.lower(), []).append(item.alias_or_name)
        for column in [each for argument in node.expressions for each in argument.find_all(exp.Column)]:
            found = holders.get(column.name.lower(), [])
            if not column.table and len(found) == 1 and found[0] and column.find_ancestor(exp.Select) is select:
                column.set("table", exp.to_identifier(found[0], quoted=True))

    def _columns(self, table: Any) -> Sequence[str]:
        return [each.name for each in self._fields(table)]

    def _field_of(self, column: Any) -> pa.DataType | None:
        """The type of a column of a table in a FROM around it; None if it is not known."""
        select = column.find_ancestor(exp.Select)
        while select is not None:
            origin = select.args.get("from_")
            items = [] if origin is None else [origin.this, *(each.this for each in select.args.get("joins") or [])]
            for item in items:
                if (
                    isinstance(item, exp.Table)
                    and item in tables_of(item)
                    and column.table.lower() in ("", item.alias_or_name.lower())
                ):
                    found = self._type_in(item, column.name.lower())
                    if found is not None:
                        return found
            select = select.find_ancestor(exp.Select)
        return None

    def _type_in(self, table: Any, name: str) -> pa.DataType | None:
        try:
            fields = self._fields(table)
        except SqlError:  # such as a common table expression
            return None
        return next((each.type for each in fields if each.name.lower() == name), None)

    def _names(self, item: Any) -> Sequence[str]:
        """The columns of an item of FROM; none if they are not known."""
        alias = item.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            return [each.name for each in alias.args["columns"]]
        if isinstance(item, exp.Subquery):
            return outputs(item)
        if item in tables_of(item):
            try:
                return self._columns(item)
            except SqlError:
                return ()
        return ()

    def _inlined(self, function: Function, arguments: Sequence[Any], found: _Found, depth: int) -> Any:
        """The body of a function in SQL: an expression, or a query for a function that gives rows."""
        holder = exp.Tuple(expressions=[self._views(self._body(function))])
        self._expand(holder, found, depth - 1)
        body = holder.expressions[0].pop()
        tables = tables_of(body)
        for table in tables:
            table.meta[OF_VIEW] = True
        alone = alone_in(body) if function.returns is not None and not tables else None
        if alone is not None:
            whole = substituted(alone, function, set(), arguments)
            return exp.cast(exp.Paren(this=whole), _result(function), dialect="duckdb")
        if arguments:
            rename_tables(function, body, tables)
        taken = {name.lower() for table in tables for name in self._columns(table)}
        taken |= {each.lower() for inner in body.find_all(exp.Subquery, exp.CTE) for each in outputs(inner)}
        around = {each.alias_or_name.lower() for each in body.find_all(exp.Table, exp.Subquery, exp.CTE)}
        if all(is_free(each, taken, around) for each in arguments):
            whole = substituted(body, function, taken, arguments)
        else:
            whole = beside(substituted(body, function, taken, None), arguments)
        if function.returns is None:
            return whole
        return exp.cast(exp.Subquery(this=whole), _result(function), dialect="duckdb")

    def _body(self, function: Function) -> Any:
        """The tree of a body in SQL: a query. Raises SqlError."""
        found = with_names(self._parsed(function.body))
        if not isinstance(found, exp.Query):
            raise not_supported(f"the body of {function.name} is no query", hint="AS $$ SELECT … $$, or RETURN expression")
        return found


class _Found:
    """The functions that a statement calls, and the size of their bodies in it."""

    def __init__(self) -> None:
        self.used: dict[str, Function] = {}
        self._nodes = 0

    def grow(self, made: Any) -> None:
        """Raises SqlError if it is too much."""
        self._nodes += sum(1 for _ in made.walk())
        if self._nodes > limits.MAX_FUNCTION_NODES:
            most = limits.MAX_FUNCTION_NODES
            raise SqlError(LIMIT_EXCEEDED, f"the functions of the statement have more than {most} parts")


def _result(function: Function) -> str:
    assert function.returns is not None
    return function.returns.kind
