"""The relations of a query under DuckDB's names: the columns that each has to give, and their places in the tree."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from barnabas.sql.catalog.relations import DELETED, KEY, MemoryRelation, Relation
from barnabas.sql.dialect import Barnabas
from barnabas.sql.duck.enums import EnumDefinition, enum_of
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import AS_OF
from barnabas.tables.scan import OFFSET

_NUMBER = "input"  # in the meta of a table: its place among the inputs
Field = Callable[[exp.Column], "pa.Field[Any] | None"]
ColumnOfTable = Callable[[Any, str], "pa.Field[Any] | None"]


@dataclass(frozen=True, slots=True)
class Input:
    """A relation as one name of a statement.

    Args:
        alias: DuckDB's name of it.
        schema: the columns that are scanned.
        outputs: the columns that the statement sees, without `_key`.
        extra: of them, those that `*` does not show.
        has_alias: whether the statement names `_key`.
        is_pending: whether the open transaction has rows of it; DuckDB has them by the name `pending_alias`.
    """

    alias: str
    relation: Relation
    schema: pa.Schema
    outputs: Sequence[str]
    extra: Sequence[str]
    has_alias: bool
    is_pending: bool = False

    @property
    def pending_alias(self) -> str:
        return f"{self.alias}p"

    @property
    def pending_schema(self) -> pa.Schema:
        shown = self.relation.columns
        keys = [field_named(self.relation, each) for each in self.relation.keys if each not in shown.names]
        return pa.schema([*shown, *keys, pa.field(DELETED, pa.bool_())])


def inputs_of(tree: Any, tables: Sequence[exp.Table], relations: Sequence[Relation], pending: Collection[str]) -> list[Input]:
    """The relations under DuckDB's names, each with the columns that the tree needs. Raises SqlError."""
    named, is_natural = _named(tree), _is_natural(tree)
    inputs, has_star = [], is_natural or _has_star(tree, is_alone=len(relations) == 1)
    for number, relation in enumerate(relations):
        shows_all = has_star or tables[number].alias_or_name.lower() in named  # the name of a table is a whole row
        is_pending = relation.name in pending and not isinstance(relation, MemoryRelation)  # those are rows of one statement
        inputs.append(_input(f"__{number}", relation, named, has_star=shows_all, is_pending=is_pending))
    if is_natural and any(each.extra for each in inputs):  # DuckDB would compare the hidden columns too
        raise SqlError("0A000", "NATURAL JOIN with a hidden column is not supported", hint="name the common columns by USING")
    return inputs


def _named(tree: Any) -> set[str]:
    """The names of the columns that a query reads, also those in USING."""
    found = {column.name.lower() for column in tree.find_all(exp.Column)}
    return found | {name.name.lower() for join in tree.find_all(exp.Join) for name in join.args.get("using") or ()}


def _is_natural(tree: Any) -> bool:
    """Whether a join compares all columns of the same name."""
    return any(str(join.args.get("method") or "").upper() == "NATURAL" for join in tree.find_all(exp.Join))


def _has_star(tree: Any, *, is_alone: bool) -> bool:
    """Whether all columns are needed. `count(*)` over one table needs none."""
    return any(not (is_alone and isinstance(star.parent, exp.Count)) for star in tree.find_all(exp.Star))


def _input(alias: str, relation: Relation, named: set[str], *, has_star: bool, is_pending: bool) -> Input:
    shown = [each for each in relation.columns if has_star or each.name.lower() in named]
    own = {each.name.lower() for each in relation.columns}
    hidden = [each for each in relation.hidden if each.name.lower() in named and each.name.lower() not in own]
    shown += hidden
    if not shown and len(relation.columns):
        counted = [each for each in relation.hidden if each.name == OFFSET and OFFSET not in own]
        plain = not (is_pending or relation.filled)
        hidden = counted if plain else []  # the records' offsets cost no decoding
        shown = hidden or [relation.columns.field(0)]
    scanned = {each.name: each for each in shown}
    has_alias = relation.key_alias is not None and KEY in named and KEY not in own
    if has_alias and relation.key_alias is not None:
        scanned.setdefault(relation.key_alias, relation.columns.field(relation.key_alias))
    for name in relation.keys if is_pending else ():
        scanned.setdefault(name, field_named(relation, name))
    outputs = [each.name for each in shown]
    extra = [*(each.name for each in hidden), *([KEY] if has_alias else ())]
    return Input(alias, relation, pa.schema(list(scanned.values())), outputs, extra, has_alias, is_pending)


def column_named(relation: Relation | None, name: str) -> pa.Field[Any] | None:
    """A column of a relation, shown or hidden, whatever its case."""
    own = (*relation.columns, *relation.hidden) if relation is not None else ()
    found: pa.Field[Any] | None = next((each for each in own if each.name.lower() == name.lower()), None)
    return found


def columns_of(tables: Sequence[Any], relations: Sequence[Relation]) -> Field:
    """A column by the name that the tree has, whatever the table."""
    by_name: dict[str, Relation] = {}
    for table, relation in zip(tables, relations, strict=True):
        by_name.setdefault(table.alias_or_name.lower(), relation)

    def field_of(column: exp.Column) -> pa.Field[Any] | None:
        own = by_name.get(column.table.lower())
        wanted = [own] if own is not None else [] if column.table else by_name.values()
        return next((found for each in wanted if (found := column_named(each, column.name)) is not None), None)

    return field_of


def columns_of_tables(relations: Mapping[int, Relation]) -> ColumnOfTable:
    """A column of one table in the tree, by its name.

    Args:
        relations: of the tables, by their `id`.
    """
    return lambda table, name: column_named(relations.get(id(table)), name)


def field_named(relation: Relation, name: str) -> pa.Field[Any]:
    """A column, shown or hidden, by its exact name."""
    found: pa.Field[Any] = next(each for each in (*relation.columns, *relation.hidden) if each.name == name)
    return found


def arrow_type(field: pa.Field[Any]) -> pa.DataType:
    kind: pa.DataType = field.type
    return kind


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


def number_tables(tables: Sequence[Any]) -> None:
    """Note at each table which of the inputs it is."""
    for number, table in enumerate(tables):
        table.meta[_NUMBER] = number


def place_all(tree: Any, inputs: Sequence[Input], *, with_labels: bool) -> None:
    """Put the relations where their names are. Rewritten functions have copies of their arguments, with the tables of subqueries."""
    tables = [(each, inputs[each.meta[_NUMBER]]) for each in tree.find_all(exp.Table) if _NUMBER in each.meta]
    for table, made in tables:
        _exclude_hidden(table, made)
    for table, made in tables:
        _place(table, made, with_labels=with_labels)


def _place(table: Any, made: Input, *, with_labels: bool) -> None:
    """Put the relation where its name was."""
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
    source: Any = exp.table_(made.alias)
    if made.has_alias or made.relation.filled or made.is_pending:
        source = exp.Subquery(this=_view(made))
    labels = {each.name: found for each in made.schema if (found := enum_of(each)) is not None} if with_labels else {}
    if labels:
        source = exp.Subquery(this=_with_labels(source, made, labels))
    for name in ("sample", "joins", "laterals", "pivots"):
        if table.args.get(name):
            source.set(name, table.args[name])
    source.set("alias", alias)
    if table.meta.get(AS_OF):
        source.meta[AS_OF] = True
    table.replace(source)


def _view(made: Input) -> Any:
    """The table as the statement sees it: with `_key`, and with the defaults of columns that older records lack."""
    items: list[Any] = []
    for name in made.outputs:
        column: Any = _quoted(name)
        default = made.relation.filled.get(name)
        if default is not None:
            column = exp.alias_(exp.func("COALESCE", column, sqlglot.parse_one(default, dialect=Barnabas)), name, quoted=True)
        items.append(column)
    if made.has_alias:
        items.append(exp.alias_(_quoted(made.relation.key_alias or ""), KEY, quoted=True))
    view = exp.select(*items, copy=False).from_(made.alias)
    return _with_pending(view, made) if made.is_pending else view


def _with_labels(source: Any, made: Input, labels: Mapping[str, EnumDefinition]) -> Any:
    """The rows with values of DuckDB's ENUM in place of texts. A text of other programs that is no label is null."""
    if isinstance(source, exp.Subquery):
        source.set("alias", exp.TableAlias(this=exp.to_identifier("__rows")))
    items: list[Any] = []
    for name in (*made.outputs, *([KEY] if made.has_alias else ())):
        column: Any = _quoted(name)
        found = labels.get(name)
        if found is not None:
            is_array = pa.types.is_list(made.schema.field(name).type)
            kind = exp.DataType(this=exp.DType.USERDEFINED, kind=found.duckdb + "[]" * is_array)
            column = exp.alias_(exp.TryCast(this=column, to=kind), name, quoted=True)
        items.append(column)
    return exp.select(*items, copy=False).from_(source, copy=False)


def _with_pending(view: exp.Select, made: Input) -> Any:
    """Also the rows of the open transaction, in place of the rows with their keys."""
    own = {*made.relation.columns.names, *made.relation.keys}
    items: list[Any] = [_quoted(name) if name in own else exp.alias_(exp.Null(), name, quoted=True) for name in made.outputs]
    if made.has_alias and made.relation.key_alias is not None:
        items.append(exp.alias_(_quoted(made.relation.key_alias), KEY, quoted=True))
    added = exp.select(*items, copy=False).from_(made.pending_alias).where(exp.not_(exp.column(DELETED)), copy=False)
    if made.relation.keys:
        same = [exp.EQ(this=_quoted(name, "p"), expression=_quoted(name, made.alias)) for name in made.relation.keys]
        changed = exp.select("1").from_(exp.alias_(exp.table_(made.pending_alias), "p", table=True)).where(exp.and_(*same))
        view = view.where(exp.not_(exp.Exists(this=changed)), copy=False)
    return exp.union(view, added, distinct=False)


def _quoted(name: str, table: str | None = None) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=table)
