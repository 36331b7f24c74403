"""Plans a query: names become relations, and the tree becomes DuckDB's text.

Each name in FROM becomes a relation of its own in DuckDB, `__0`, `__1`, …, with the columns that `*` shows and the hidden ones that the
statement names. A table with a primary key becomes a subquery of the newest row of each key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from barnabas.sql.catalog.relations import KEY, Relation
from barnabas.sql.dialect import to_duckdb
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.environment import Setting, answer_calls
from barnabas.sql.planning.names import parts_of, position_in, tables_of
from barnabas.sql.planning.outputs import name_outputs
from barnabas.sql.planning.parameters import infer, literal, parameters_of, typed
from barnabas.sql.states import INVALID_PARAMETER
from barnabas.tables.scan import OFFSET, VALUE

Find = Callable[[Sequence[str], int | None], Relation]


@dataclass(frozen=True, slots=True)
class Input:
    """A relation as one name of a statement.

    Args:
        alias: DuckDB's name of it.
        schema: the columns that are scanned.
        outputs: the columns that the statement sees, without `_key`.
        extra: of them, those that `*` does not show.
        has_alias: whether the statement names `_key`.
    """

    alias: str
    relation: Relation
    schema: pa.Schema
    outputs: Sequence[str]
    extra: Sequence[str]
    has_alias: bool


@dataclass(slots=True)
class QueryPlan:
    """A query, ready for DuckDB.

    Args:
        sql: its text, with `$1`, … .
        parameters: their types; pa.null() where nothing tells one.
        tree: of the query before it became text, for values of unknown types.
        schema: of the rows; filled in when DuckDB has checked the query.
    """

    sql: str
    inputs: list[Input]
    parameters: list[pa.DataType]
    tree: Any
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))

    def bound(self, values: Sequence[Any]) -> tuple[str, list[Any]]:
        """The text and the values to run it with. Raises SqlError if some are missing."""
        if len(values) != len(self.parameters):
            raise SqlError("08P01", f"the statement has {len(self.parameters)} parameters, but {len(values)} values came with it")
        if not values:
            return self.sql, []
        if not any(pa.types.is_null(kind) for kind in self.parameters):
            return self.sql, list(values)
        tree = self.tree.copy()
        for number, nodes in parameters_of(tree).items():
            for node in nodes:
                if isinstance(node.parent, exp.Cast):
                    continue
                node.replace(literal(values[number - 1]))
        left = parameters_of(tree)
        numbers = {number: place for place, number in enumerate(sorted(left), 1)}
        for number, nodes in left.items():
            for node in nodes:
                node.replace(exp.Parameter(this=exp.Literal.number(numbers[number])))
        return to_duckdb(tree), [values[number - 1] for number in sorted(left)]


def plan_query(
    tree: Any,
    find: Find,
    facts: Mapping[str, Any],
    setting: Setting,
    given: Sequence[pa.DataType | None] = (),
    known: Mapping[int, pa.DataType] | None = None,
) -> QueryPlan:
    """The plan of a SELECT, VALUES or set operation; the tree is changed.

    Args:
        find: the relation of a name; raises SqlError 42P01.
        facts: values of functions about the session.
        given: types of parameters, by the client.
        known: types of parameters that stand alone in a column of an INSERT.
    """
    _refuse(tree)
    answer_calls(tree, facts, setting)
    places = parameters_of(tree)
    tables = tables_of(tree)
    relations = [find(parts_of(table), position_in(table)) for table in tables]
    named = {column.name.lower() for column in tree.find_all(exp.Column)}
    inputs = []
    for number, (table, relation) in enumerate(zip(tables, relations, strict=True)):
        inputs.append(_input(f"__{number}", relation, named, has_star=_has_star(tree)))
    types = infer(places, given, _columns(tables, relations), known)
    name_outputs(tree)
    for table, made in zip(tables, inputs, strict=True):
        _exclude_hidden(table, made)
    for table, made in zip(tables, inputs, strict=True):
        _place(table, made)
    typed(places, types)
    return QueryPlan(to_duckdb(tree), inputs, types, tree)


def _refuse(tree: Any) -> None:
    for node in tree.find_all(exp.Into):
        raise SqlError("0A000", "SELECT INTO is not supported", position=position_in(node), hint="use CREATE TABLE … AS")
    for node in tree.find_all(exp.DML):
        raise SqlError("0A000", f"{node.key.upper()} within a query is not supported")


def _has_star(tree: Any) -> bool:
    return next(iter(tree.find_all(exp.Star)), None) is not None


def _input(alias: str, relation: Relation, named: set[str], *, has_star: bool) -> Input:
    shown = [each for each in relation.columns if has_star or each.name.lower() in named]
    own = {each.name.lower() for each in relation.columns}
    hidden = [each for each in relation.hidden if each.name.lower() in named and each.name.lower() not in own]
    shown += hidden
    if not shown and len(relation.columns):
        shown = [relation.columns.field(0)]
    scanned = {each.name: each for each in shown}
    needed = [*relation.key, *((OFFSET, VALUE) if relation.key else ())]
    has_alias = bool(relation.key_alias) and KEY in named and KEY not in own
    for name in (*needed, *([relation.key_alias] if relation.key_alias and has_alias else ())):
        scanned.setdefault(name, _field(relation, name))
    outputs = [each.name for each in shown]
    extra = [*(each.name for each in hidden), *([KEY] if has_alias else ())]
    return Input(alias, relation, pa.schema(list(scanned.values())), outputs, extra, has_alias)


def _field(relation: Relation, name: str) -> pa.Field[Any]:
    return relation.columns.field(name) if name in relation.columns.names else relation.hidden.field(name)


def _columns(tables: Sequence[Any], relations: Sequence[Relation]) -> Callable[[exp.Column], pa.DataType | None]:
    by_name: dict[str, Relation] = {}
    for table, relation in zip(tables, relations, strict=True):
        by_name.setdefault(table.alias_or_name.lower(), relation)

    def type_of(column: exp.Column) -> pa.DataType | None:
        name = column.name.lower()
        wanted = [by_name[column.table.lower()]] if column.table.lower() in by_name else [] if column.table else by_name.values()
        for relation in wanted:
            for each in (*relation.columns, *relation.hidden):
                if each.name.lower() == name:
                    return each.type
        return None

    return type_of


def _exclude_hidden(table: Any, made: Input) -> None:
    """Let the stars of the SELECT that reads the table leave out its hidden columns."""
    extra = made.extra
    select = table.find_ancestor(exp.Select)
    if not extra or select is None or table.find_ancestor(exp.Subquery, exp.Select) is not select:
        return
    name = table.alias_or_name
    for item in select.expressions:
        star = item if isinstance(item, exp.Star) else item.this if isinstance(item, exp.Column) else None
        if not isinstance(star, exp.Star) or (isinstance(item, exp.Column) and item.table.lower() != name.lower()):
            continue
        left_out = list(star.args.get("except_") or [])
        left_out += [
            exp.column(exp.to_identifier(each, quoted=True), table=exp.to_identifier(name, quoted=True)) for each in extra
        ]
        star.set("except_", left_out)


def _place(table: Any, made: Input) -> None:
    """Put the relation where its name was."""
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
    source: Any = exp.table_(made.alias)
    if made.relation.key or made.has_alias:
        source = exp.Subquery(this=_view(made))
    for name in ("sample", "joins", "laterals", "pivots"):
        if table.args.get(name):
            source.set(name, table.args[name])
    source.set("alias", alias)
    table.replace(source)


def _view(made: Input) -> exp.Select:
    """The table as the statement sees it: `_key`, and only the newest row of each key."""
    items: list[Any] = [exp.column(exp.to_identifier(name, quoted=True)) for name in made.outputs]
    if made.has_alias:
        items.append(exp.alias_(exp.column(exp.to_identifier(made.relation.key_alias, quoted=True)), KEY, quoted=True))
    view = exp.select(*items, copy=False).from_(made.alias)
    if made.relation.key:
        keys = ", ".join(exp.to_identifier(name, quoted=True).sql("duckdb") for name in made.relation.key)
        newest = f"row_number() OVER (PARTITION BY {keys} ORDER BY {OFFSET} DESC) = 1 AND {VALUE} IS NOT NULL"
        view.set("qualify", exp.Qualify(this=sqlglot.condition(newest, dialect="duckdb")))
    return view


def check_values(plan: QueryPlan, values: Sequence[Any]) -> None:
    """Raises SqlError for a value that no statement can have."""
    for number, value in enumerate(values, 1):
        if isinstance(value, str) and "\x00" in value:
            raise SqlError(INVALID_PARAMETER, f"the value of ${number} has a zero byte")
