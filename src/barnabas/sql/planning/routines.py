"""Calls of users' functions in a query.

A call of a function in Python becomes a call of DuckDB's function `__f_…`, whose name tells the definition. A call of a function in SQL
becomes its body with the arguments in place.

Rules
  1. A function is chosen by its name and the number of arguments. Each argument is cast to the type that the function declares.
  2. In a body without tables, arguments stand where their names stood. Otherwise they are columns of a row beside the body, so that no
     table of the body can take the names in them.
  3. A function that gives rows is a subquery in FROM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from barnabas import limits
from barnabas.functions.definition import PYTHON, Argument, Function
from barnabas.sql.dialect import OWN_NAME, WRITTEN
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import OF_VIEW, position_in, tables_of
from barnabas.sql.planning.outputs import with_names
from barnabas.sql.states import LIMIT_EXCEEDED, TOO_COMPLEX, UNDEFINED_FUNCTION, not_supported, syntax_error

OWN = "own_function"  # the mark of a call of a function in Python
ROW = "_arguments"  # the row of arguments beside a body
Named = Callable[[str], Sequence[Function]]
Columns = Callable[[exp.Table], Sequence[str]]  # the names of a table's columns; raises SqlError


class Routines:
    """The functions that a query may call.

    Args:
        named: the functions of a name.
        columns: the columns of a table.
        views: puts the queries of views in place of their names.
        parsed: the tree of a text.
    """

    def __init__(self, named: Named, columns: Columns, views: Callable[[Any], Any], parsed: Callable[[str], Any]) -> None:
        self._named, self._columns, self._views, self._parsed = named, columns, views, parsed

    def alone(self, function: Function, name: str) -> Routines:
        """The same with one function more, or in place of another. It also has a name of its own."""

        def named(wanted: str) -> Sequence[Function]:
            if wanted == name:
                return (function,)
            found = [each for each in self._named(wanted) if each.signature != function.signature]
            return [function, *found] if wanted.lower() == function.name.lower() else found

        return Routines(named, self._columns, self._views, self._parsed)

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
            function = _chosen(name, functions, node)
            found.used[function.digest] = function
            self._replace(node, function, found, depth)

    def _replace(self, node: Any, function: Function, found: _Found, depth: int) -> None:
        if function.language != PYTHON:
            self._qualify(node)
        holder = exp.Tuple(expressions=_arguments(function, node, self._parsed))
        self._expand(holder, found, depth - 1)  # a default may call a function
        arguments = [each.pop() for each in list(holder.expressions)]
        place = node.parent if _has_schema(node) else node
        table = place.parent if isinstance(place.parent, (exp.Table, exp.Lateral)) and place.parent.this is place else None
        if function.language == PYTHON:
            made = _python_call(function, arguments, node)
        else:
            made = self._inlined(function, arguments, found, depth)
            found.grow(made)
        if table is not None:
            if function.language == PYTHON and function.returns is None:
                made = _rows_of(function, made)
            is_lateral = isinstance(table, exp.Lateral) or any(each.find(exp.Column) is not None for each in arguments)
            _place_rows(table, function, made, is_lateral=is_lateral)
        elif function.returns is None:
            place.replace(_each_row(function, made, node))
        else:
            _place_value(place, function, made, node)

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

    def _names(self, item: Any) -> Sequence[str]:
        """The columns of an item of FROM; none if they are not known."""
        alias = item.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            return [each.name for each in alias.args["columns"]]
        if isinstance(item, exp.Subquery):
            return _outputs(item)
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
        alone = _alone(body) if function.returns is not None and not tables else None
        if alone is not None:
            whole = _substituted(alone, function, set(), arguments)
            return exp.cast(exp.Paren(this=whole), _result(function), dialect="duckdb")
        if arguments:
            _rename_tables(function, body, tables)
        taken = {name.lower() for table in tables for name in self._columns(table)}
        taken |= {each.lower() for inner in body.find_all(exp.Subquery, exp.CTE) for each in _outputs(inner)}
        around = {each.alias_or_name.lower() for each in body.find_all(exp.Table, exp.Subquery, exp.CTE)}
        if all(_is_free(each, taken, around) for each in arguments):
            whole = _substituted(body, function, taken, arguments)
        else:
            whole = _beside(_substituted(body, function, taken, None), arguments)
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


def _chosen(name: str, functions: Sequence[Function], node: Any) -> Function:
    count = len(node.expressions)
    for each in functions:
        if each.takes(count):
            return each
    there = ", ".join(each.signature for each in functions)
    start = node.meta.get("start")
    raise SqlError(
        UNDEFINED_FUNCTION, f"function {name} with {count} arguments does not exist", position=None if start is None else start + 1,
        hint=f"there is {there}",
    )  # fmt: skip


def _arguments(function: Function, node: Any, parsed: Callable[[str], Any]) -> list[Any]:
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


def _has_schema(node: Any) -> bool:
    """Whether a call is written `public.f(…)`."""
    parent = node.parent
    return isinstance(parent, exp.Dot) and parent.expression is node and parent.this.name.lower() == "public"


def _python_call(function: Function, arguments: Sequence[Any], node: Any) -> Any:
    made = exp.Anonymous(this=function.call, expressions=list(arguments) or [exp.Literal.number(0)])
    made.meta.update(node.meta)
    made.meta.update({OWN: True, WRITTEN: function.name})
    if function.returns is not None and function.returns.kind == "JSON":
        return exp.cast(made, "JSON", dialect="duckdb")
    return made


def _each_row(function: Function, made: Any, node: Any) -> Any:
    """A function that gives rows, in a SELECT: the only column, or a struct."""
    if function.language != PYTHON:
        raise not_supported(
            f"{function.name} gives rows, so it stands in FROM", position_in(node), f"SELECT * FROM {function.name}(…)"
        )
    found: Any = exp.Anonymous(this="unnest", expressions=[made])
    if len(function.columns) == 1:
        found = exp.Anonymous(this="struct_extract", expressions=[found, exp.Literal.string(function.columns[0].name)])
    return exp.alias_(found, function.name, quoted=True) if isinstance(node.parent, exp.Select) else found


def _rows_of(function: Function, made: Any) -> Any:
    inner = exp.select(exp.alias_(exp.Anonymous(this="unnest", expressions=[made]), "_r"))
    shown = []
    for each in function.columns:
        part: Any = exp.Anonymous(this="struct_extract", expressions=[exp.column("_r"), exp.Literal.string(each.name)])
        part = exp.cast(part, "JSON", dialect="duckdb") if each.kind == "JSON" else part
        shown.append(exp.alias_(part, each.name, quoted=True))
    return exp.select(*shown).from_(inner.subquery("_rows"))


def _place_rows(table: Any, function: Function, made: Any, *, is_lateral: bool) -> None:
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


def _place_value(place: Any, function: Function, made: Any, node: Any) -> None:
    """The value of a function; as an output it has the function's name."""
    if isinstance(place.parent, exp.Select) and place.arg_key == "expressions":
        made = exp.alias_(made, str(node.meta.get(WRITTEN) or function.name), quoted=True)
    place.replace(made)


def _alone(body: Any) -> Any:
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


def _outputs(inner: Any) -> Sequence[str]:
    query = inner.this
    return [each.alias_or_name for each in query.selects] if isinstance(query, exp.Query) else ()


def _rename_tables(function: Function, body: Any, tables: Sequence[Any]) -> None:
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


def _is_free(argument: Any, taken: set[str], around: set[str]) -> bool:
    """Whether an argument means the same within a body with these columns and tables."""
    if argument.find(exp.AggFunc, exp.Window, exp.Query, exp.Anonymous) is not None:
        return False
    columns = argument.find_all(exp.Column)
    return all(each.table.lower() not in around if each.table else each.name.lower() not in taken for each in columns)


def _substituted(body: Any, function: Function, taken: set[str], values: Sequence[Any] | None) -> Any:
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


def _beside(body: Any, arguments: Sequence[Any]) -> Any:
    """The body, with a row of the arguments that it sees."""
    row = exp.select(*(exp.alias_(each, f"_{place}") for place, each in enumerate(arguments))).subquery(ROW)
    inner = exp.Lateral(this=exp.Subquery(this=body), alias=exp.TableAlias(this=exp.to_identifier("_body")))
    return exp.select("_body.*").from_(row).join(inner, join_type="cross")
