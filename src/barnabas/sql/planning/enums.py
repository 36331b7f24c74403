"""Types of CREATE TYPE … AS ENUM in a query.

DuckDB compares an ENUM with a text as two texts, in the order of the alphabet. So every literal and every parameter beside an expression of
such a type becomes a value of the type, and a comparison whose other side is of another type is refused, as in Postgres.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.catalog.postgres.functions import array_of_text
from barnabas.sql.catalog.relations import Relation
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.duck.enums import EnumParameter, enum_of, labelled_type
from barnabas.sql.duck.types import enum_in, postgres_of
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.inputs import ColumnOfTable, Field, columns_of_tables
from barnabas.sql.planning.names import position_in
from barnabas.sql.planning.parameters import type_of
from barnabas.sql.planning.user_types import cast_as, data_type, put, shown_kind
from barnabas.sql.states import UNDEFINED_FUNCTION, not_supported
from barnabas.sql.writing.fitting import invalid_value

_ORDERED = (exp.GT, exp.GTE, exp.LT, exp.LTE)
_COMPARED = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, *_ORDERED)
_SIGNS = {"EQ": "=", "NEQ": "<>", "NullSafeEQ": "=", "NullSafeNEQ": "=", "GT": ">", "GTE": ">=", "LT": "<", "LTE": "<="}
_SAME = (
    exp.Paren, exp.Alias, exp.Max, exp.Min, exp.Window, exp.Filter, exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.NthValue,
    exp.Lag, exp.Lead, exp.AnyValue, exp.Distinct, exp.Ordered, exp.Order, exp.Mode, exp.IgnoreNulls, exp.RespectNulls,
)  # fmt: skip
_MIXED = (exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif, exp.If, exp.Array)
_FUNCTIONS = ("enum_first", "enum_last", "enum_range")
_MOST_NESTED = 40


def read_enums(tree: Any, column_of: ColumnOfTable, field_of: Field, *, as_texts: bool = False) -> None:
    """Make literals and parameters values of the types beside them.

    Raises:
        SqlError: 22P02, 42883, and 0A000 for an order of texts.

    Args:
        column_of: a column of one table in the tree, by its name.
        field_of: a column by the name that the tree has, whatever the table.
        as_texts: whether the values stay texts, whose order is another one.
    """
    reader = _Reader(tree, column_of, field_of, as_texts=as_texts)
    reader.read()
    if as_texts:
        reader.refuse_order()


def refuse_order(tree: Any, relations: Mapping[int, Relation]) -> None:
    """Raises SqlError 0A000 if something depends on the order of labels, where they are texts.

    Args:
        relations: of the tables in the tree, by their `id`.
    """
    read_enums(tree, columns_of_tables(relations), lambda _: None, as_texts=True)


class _Reader:
    def __init__(self, tree: Any, column_of: ColumnOfTable, field_of: Field, *, as_texts: bool) -> None:
        self._tree, self._column_of, self._field_of, self._as_texts = tree, column_of, field_of, as_texts

    def read(self) -> None:
        for node in reversed(list(self._tree.walk())):
            if isinstance(node, _COMPARED):
                self._comparison(node, [node.this, node.expression])
            elif isinstance(node, exp.Between):
                self._comparison(node, [node.this, node.args["low"], node.args["high"]])
            elif isinstance(node, exp.In):
                self._comparison(node, [node.this, *node.expressions])
            elif isinstance(node, _MIXED):
                self._mix(_parts(node))
            elif isinstance(node, exp.Case):
                self._case(node)
            elif isinstance(node, exp.Values):
                for cells in _columns_of_values(node):
                    self._mix(cells)
            elif isinstance(node, exp.SetOperation):
                self._union(node)
            elif isinstance(node, exp.Cast):
                self._cast(node)
            elif isinstance(node, exp.Anonymous) and str(node.this).lower() in (*_FUNCTIONS, "pg_typeof"):
                self._function(node)

    def _comparison(self, node: Any, sides: Sequence[Any]) -> None:
        kinds = [self._kind_of_side(each) for each in sides]
        wanted = next((each for each in kinds if each is not None), None)
        if wanted is None:
            return
        for side, kind in zip(sides, kinds, strict=True):
            if kind is not None and _identity(kind) != _identity(wanted):
                raise self._mismatch(node, shown_kind(wanted), shown_kind(kind), side)
            if kind is not None:
                continue
            if isinstance(_plain(side), (exp.Any, exp.All)):
                inner = _plain(_plain(side).this)
                if isinstance(inner, exp.Array):
                    self._mix([exp.Cast(to=data_type(wanted)), *inner.expressions])
                elif not pa.types.is_list(wanted):
                    self._becomes(inner, pa.list_(wanted))
            elif not self._becomes(side, wanted):
                self._refuse(node, side, wanted)

    def _kind_of_side(self, side: Any) -> Any:
        """The type of one side of a comparison: that of the elements for ANY and ALL."""
        plain = _plain(side)
        if not isinstance(plain, (exp.Any, exp.All)):
            return self.kind(side)
        return _element(self.kind(plain.this))

    def _becomes(self, side: Any, wanted: Any) -> bool:
        """Whether a side is a literal, a parameter or null, which takes the type of the other side."""
        plain = _plain(side)
        if isinstance(plain, exp.Null):
            return True
        if isinstance(plain, exp.Literal) and plain.is_string:
            if isinstance(wanted, EnumParameter) and plain.name not in wanted.definition.labels:
                raise invalid_value(wanted.definition, plain.name, position_in(plain))
            if not isinstance(wanted, EnumParameter):
                array = array_of_text(plain.name)
                plain.replace(array)
                plain = array
            self._give_type(plain, wanted)
            return True
        if isinstance(plain, exp.Parameter):
            self._give_type(plain, wanted)
            return True
        return isinstance(plain, exp.Tuple)

    def _give_type(self, node: Any, wanted: Any) -> None:
        if not self._as_texts:
            cast_as(node, wanted)

    def refuse_order(self) -> None:
        """Raises SqlError 0A000 if something depends on the order of labels."""
        for node in self._tree.walk():
            parts: list[Any] = []
            if isinstance(node, _ORDERED):
                parts = [node.this, node.expression]
            elif isinstance(node, exp.Ordered):
                parts = [self._output_of(node.this)]
            elif isinstance(node, (exp.Between, exp.Max, exp.Min, exp.Quantile, exp.PercentileDisc, exp.Median)):
                parts = [node.this]
            elif isinstance(node, (exp.ArgMax, exp.ArgMin)):
                parts = [node.expression]
            elif isinstance(node, (exp.Greatest, exp.Least)):
                parts = _parts(node)
            elif isinstance(node, exp.Anonymous) and str(node.this).lower() in _FUNCTIONS:
                parts = list(node.expressions)
            kind = next((found for each in parts if (found := self.kind(each)) is not None), None)
            if kind is not None:
                raise not_supported(
                    f"a job cannot keep the order of the type {shown_kind(kind)}, whose labels may change", position_in(node),
                    "the query that reads the view can ask for the order, with a cast to the type",
                )  # fmt: skip

    def _output_of(self, node: Any) -> Any:
        """The meaning of ORDER BY: an output by its name or its place, or the expression itself."""
        select = node.find_ancestor(exp.Select)
        outputs = select.expressions if select is not None else []
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit() and 0 < int(node.name) <= len(outputs):
            return outputs[int(node.name) - 1]
        if isinstance(node, exp.Column) and not node.table:
            return next(
                (each for each in outputs if isinstance(each, exp.Alias) and each.alias.lower() == node.name.lower()), node
            )
        return node

    def _refuse(self, node: Any, side: Any, wanted: Any) -> None:
        """Refuse what is surely of another type, and an order of what may be one."""
        plain = _plain(side)
        known = type_of(plain, self._type_of_column)
        if known is None and not isinstance(node, (*_ORDERED, exp.Between)):
            return  # texts are equal if the labels are
        raise self._mismatch(node, shown_kind(wanted), "text" if known is None else postgres_of(known), side)

    def _type_of_column(self, column: exp.Column) -> pa.DataType | None:
        found = self._field_of(column)
        return None if found is None else found.type

    def _mismatch(self, node: Any, left: str, right: str, side: Any) -> SqlError:
        sign = _SIGNS.get(type(node).__name__, "=" if isinstance(node, exp.In) else ">=")
        if side is node.this:
            left, right = right, left
        return SqlError(
            UNDEFINED_FUNCTION, f"operator does not exist: {left} {sign} {right}", position=position_in(side),
            hint="No operator matches the given name and argument types. You might need to add explicit type casts.",
        )  # fmt: skip

    def _mix(self, parts: Sequence[Any]) -> None:
        wanted = next((kind for each in parts if (kind := self.kind(each)) is not None), None)
        for each in parts if wanted is not None else ():
            if self.kind(each) is None:
                self._becomes(each, wanted)

    def _case(self, node: exp.Case) -> None:
        self._mix([*(each.args.get("true") for each in node.args["ifs"]), node.args.get("default")])
        if node.this is not None:
            self._comparison(node, [node.this, *(each.this for each in node.args["ifs"])])

    def _union(self, node: exp.SetOperation) -> None:
        left, right = _select(node.left), _select(node.right)
        if left is None or right is None:
            return
        for mine, other in zip(left.expressions, right.expressions, strict=False):
            self._mix([mine.unalias(), other.unalias()])

    def _cast(self, node: exp.Cast) -> None:
        """`'ok'::mood`, and `'{ok,sad}'::mood[]`."""
        found = enum_in(node.to)
        if found is None or not isinstance(node.this, exp.Literal) or not node.this.is_string:
            return
        if node.to.this == exp.DType.USERDEFINED and node.this.name not in found.labels:
            raise invalid_value(found, node.this.name, position_in(node.this))

    def _function(self, node: exp.Anonymous) -> None:
        kinds = [kind for each in node.expressions if (kind := self.kind(each)) is not None]
        if kinds and str(node.this).lower() == "pg_typeof":
            put(node, exp.Literal.string(shown_kind(kinds[0])), "pg_typeof")
            return
        if not kinds or not isinstance(kinds[0], EnumParameter):
            return
        if self._as_texts:
            return
        kind, name = kinds[0], str(node.this).lower()
        labels = [exp.Literal.string(each) for each in kind.definition.labels]
        if name != "enum_range":
            made: Any = exp.Cast(this=labels[0 if name == "enum_first" else -1] if labels else exp.Null(), to=data_type(kind))
        else:
            made = exp.Cast(this=exp.Array(expressions=labels), to=data_type(pa.list_(kind)))
            if len(node.expressions) == 2:
                made = self._between(made, node.expressions, kind)
        put(node, made, name)

    def _between(self, labels: Any, bounds: Sequence[Any], kind: Any) -> Any:
        """The labels from one up to another; null stands for no bound."""
        low, high = (each.copy() for each in bounds)
        one = exp.column("__label")
        inside = exp.and_(
            exp.or_(exp.Is(this=low, expression=exp.Null()), exp.GTE(this=one.copy(), expression=low.copy())),
            exp.or_(exp.Is(this=high, expression=exp.Null()), exp.LTE(this=one.copy(), expression=high.copy())),
        )
        filtered = exp.Lambda(this=inside, expressions=[exp.to_identifier("__label")])
        return exp.Cast(this=exp.func("LIST_FILTER", labels, filtered, dialect="duckdb"), to=data_type(pa.list_(kind)))

    def kind(self, node: Any, depth: int = 0) -> Any:
        """The type of an expression, if it is of users; None for any other, and where nothing tells it."""
        if node is None or depth > _MOST_NESTED:
            return None
        if isinstance(node, (exp.Array, exp.ArrayAgg, exp.Bracket, exp.Explode, exp.Unnest, exp.Anonymous)):
            return self._kind_of_array(node, depth)
        if isinstance(node, exp.Column):
            return self._column(node, depth + 1)
        if isinstance(node, (exp.Cast, exp.TryCast)):
            found = enum_in(node.to)
            is_array = node.to.this in (exp.DType.ARRAY, exp.DType.LIST)
            return None if found is None else pa.list_(EnumParameter(found)) if is_array else EnumParameter(found)
        if isinstance(node, _SAME):
            return self.kind(node.this, depth + 1)
        if isinstance(node, _MIXED):
            return self._first(_parts(node), depth)
        if isinstance(node, exp.Case):
            return self._first([*(each.args.get("true") for each in node.args["ifs"]), node.args.get("default")], depth)
        if isinstance(node, exp.Subquery):
            select = _select(node.this)
            return None if select is None or not select.expressions else self.kind(select.expressions[0], depth + 1)
        return None

    def _kind_of_array(self, node: Any, depth: int) -> Any:
        """The type of an array, or of an element of one."""
        if isinstance(node, exp.Array):
            return _list_of(self._first(node.expressions, depth))
        if isinstance(node, exp.ArrayAgg):
            return _list_of(self.kind(node.this, depth + 1))
        if isinstance(node, (exp.Bracket, exp.Explode)):
            return _element(self.kind(node.this, depth + 1))
        if isinstance(node, exp.Unnest):
            return _element(self._first(node.expressions, depth))
        if isinstance(node, exp.Anonymous) and str(node.this).lower() in _FUNCTIONS:
            found = self._first(node.expressions, depth)
            return _list_of(found) if str(node.this).lower() == "enum_range" else found
        return None

    def _first(self, parts: Sequence[Any], depth: int) -> Any:
        return next((found for each in parts if (found := self.kind(each, depth + 1)) is not None), None)

    def _column(self, column: exp.Column, depth: int) -> Any:
        """By the tables and queries that the column may be of, from the inside out."""
        scope: Any = column
        while (scope := scope.find_ancestor(exp.Select)) is not None:
            for source in _sources(scope):
                if column.table and source.alias_or_name.lower() != column.table.lower():
                    continue
                is_there, found = self._of_source(source, column.name, depth)
                if is_there:
                    return found
        return None

    def _of_source(self, source: Any, name: str, depth: int) -> tuple[bool, Any]:
        """Whether a source has a column of a name, and the type of the column."""
        query, names = source.this if isinstance(source, exp.Subquery) else None, _column_names(source)
        if isinstance(source, exp.Table):
            query, own = _common(source)
            if query is None:
                found = self._column_of(source, name)
                return found is not None, None if found is None else labelled_type(found)
            names = names or own
        if isinstance(source, exp.Unnest):
            is_there = name.lower() in (source.alias.lower(), *(each.lower() for each in names))
            return is_there, self.kind(source, depth + 1) if is_there else None
        if isinstance(source, exp.Values) or isinstance(query, exp.Values):
            values: Any = source if isinstance(source, exp.Values) else query
            return self._of_values(values, name, names or _column_names(values), depth)
        return (False, None) if query is None else self._output(query, name, names, depth)

    def _of_values(self, values: exp.Values, name: str, names: Sequence[str], depth: int) -> tuple[bool, Any]:
        columns = _columns_of_values(values)
        names = [*names, *(f"column{place}" for place in range(len(names) + 1, len(columns) + 1))]
        found = next((cells for each, cells in zip(names, columns, strict=False) if each.lower() == name.lower()), None)
        return found is not None, None if found is None else self._first(found, depth)

    def _output(self, query: Any, name: str, names: Sequence[str], depth: int) -> tuple[bool, Any]:
        """An output of a query by its name, or by its place where the query has names of its own for columns."""
        select = _select(query)
        if select is None or depth > _MOST_NESTED:
            return False, None
        place = next((at for at, each in enumerate(names) if each.lower() == name.lower()), None)
        if place is not None and not any(each.is_star for each in select.expressions):
            return (True, self.kind(select.expressions[place], depth + 1)) if place < len(select.expressions) else (False, None)
        for item in select.expressions:
            if item.is_star:
                for source in _sources(select):
                    is_there, found = self._of_source(source, name, depth + 1)
                    if is_there:
                        return True, found
            elif item.alias_or_name.lower() == name.lower():
                return True, self.kind(item, depth + 1)
        return False, None


def _plain(node: Any) -> Any:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _parts(node: Any) -> list[Any]:
    if isinstance(node, exp.If):
        return [node.args.get("true"), node.args.get("false")]
    return [node.this, *node.expressions] if not isinstance(node, (exp.Array, exp.Nullif)) else (
        list(node.expressions) if isinstance(node, exp.Array) else [node.this, node.expression]
    )  # fmt: skip


def _list_of(kind: Any) -> Any:
    return None if kind is None or pa.types.is_list(kind) else pa.list_(kind)


def _element(kind: Any) -> Any:
    return kind.value_type if kind is not None and pa.types.is_list(kind) else None


def _identity(kind: Any) -> tuple[bool, int]:
    is_list = pa.types.is_list(kind)
    return is_list, (kind.value_type if is_list else kind).definition.oid


def _select(query: Any) -> exp.Select | None:
    """The SELECT that gives a query the names of its columns."""
    while isinstance(query, (exp.Subquery, exp.SetOperation)):
        query = query.this
    return query if isinstance(query, exp.Select) else None


def _sources(select: exp.Select) -> Iterator[Any]:
    start = select.args.get("from_")
    if start is not None:
        yield start.this
        yield from (each.this for each in start.this.args.get("joins") or ())
    yield from (each.this for each in select.args.get("joins") or ())


def _columns_of_values(values: exp.Values) -> list[tuple[Any, ...]]:
    """The cells of VALUES, column by column."""
    return list(zip(*(each.expressions if isinstance(each, exp.Tuple) else [each] for each in values.expressions), strict=False))


def _column_names(source: Any) -> list[str]:
    alias = source.args.get("alias")
    return [each.name for each in alias.columns] if isinstance(alias, exp.TableAlias) else []


def _common(table: exp.Table) -> tuple[Any, list[str]]:
    """The query that WITH gives the name of a table, and its own names of columns."""
    scope: Any = table if not table.args.get("db") else None
    while scope is not None:
        with_ = scope.args.get("with_") if isinstance(scope, exp.Query) else None
        for each in with_.expressions if with_ is not None else ():
            if each.alias.lower() == table.name.lower():
                return each.this, _column_names(each)
        scope = scope.parent
    return None, []


def has_labels(relation: Relation) -> bool:
    """Whether a relation has a column of such a type."""
    names = relation.sized if isinstance(relation, TopicRelation) else relation.columns.names
    return any(enum_of(relation.columns.field(name)) is not None for name in names)
