"""The rows that an INSERT brings: of VALUES, of a query, of defaults.

Rows of plain literals and parameters need no DuckDB: their values become Arrow's at once. DuckDB converts all others, and its errors
say why one does not fit.
"""

from __future__ import annotations

import datetime
import decimal
import re
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.duck.types import postgres_of
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.planning.sequences import name_in
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.numbered import Defaults, column_of_numbers, numbers_of
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.statements.target import cast_to, default_of, is_default, uncast, with_columns
from barnabas.sql.states import OUT_OF_RANGE, syntax_error
from barnabas.tables.column_types import JSON, UUID, mark_of
from barnabas.tables.json_values import UUID_TEXT


class Parameter(int):
    """The place of a parameter among the values, from 0 on."""


class Next(str):
    """The next number of the sequence with this name."""


class NewRows:
    """The rows of one INSERT, with all columns of the relation.

    Args:
        names: of the columns that the source brings.
        source: VALUES or a query; None: one row of defaults.
    """

    def __init__(self, session: Host, relation: TopicRelation, names: Sequence[str], source: Any, text: str, given: Any) -> None:
        self._session, self._relation, self._text = session, relation, text
        self._schema = pa.schema([each.with_nullable(True) for each in relation.columns])
        self._missing = [each.name for each in relation.columns if each.name not in names]
        self._plain: list[list[Any]] | None = None
        self._defaults: Defaults | None = None
        self.plan = checked(session, self._source(names, source, given), text, given)

    def _source(self, names: Sequence[str], source: Any, given: Any) -> exp.Select:
        if source is None:
            self._plain = self._plain_cells([[]], [])
            values: Any = exp.Values(expressions=[exp.Tuple(expressions=[exp.Null()])])
            return self._wrapped(values, [], 1)
        if isinstance(source, exp.Values) and not source.args.get("alias"):
            used, rows = self._cells(names, source)
            self._plain = self._plain_cells(rows, used)
            return self._wrapped(exp.Values(expressions=[exp.Tuple(expressions=row) for row in rows]), used, len(used))
        inner = checked(self._session, source.copy(), self._text, given)
        count = len(inner.schema)
        return self._wrapped(source, self._fitting(names, count, source), count)

    def _fitting(self, names: Sequence[str], count: int, place: Any) -> list[str]:
        if count > len(names):
            raise syntax_error("INSERT has more expressions than target columns", position_in(place))
        return list(names[:count])

    def _cells(self, names: Sequence[str], source: Any) -> tuple[list[str], list[list[Any]]]:
        """The names that the rows bring, and the cells, each cast to its column."""
        found: list[list[Any]] = []
        width = None
        for item in source.expressions:
            cells = list(item.expressions) if isinstance(item, exp.Tuple) else [item]
            if width is not None and len(cells) != width:
                raise syntax_error("VALUES lists must all be the same length", position_in(item))
            width = len(cells)
            found.append(cells)
        used = self._fitting(names, width or 0, source)
        for row in found:
            for place, name in enumerate(used):
                cell = default_of(self._relation, name) if is_default(row[place]) else row[place]
                row[place] = cast_to(cell.copy(), self._schema.field(name))
        self._missing += [name for name in names if name not in used]
        return used, found

    def _wrapped(self, source: Any, names: Sequence[str], width: int) -> exp.Select:
        """A query of all columns, over the source."""
        aliases = [f"c{number}" for number in range(max(width, 1))]
        items = []
        self._defaults = Defaults(self._session, self._relation, [each for each in self._schema.names if each not in names])
        for field in self._schema:
            if field.name in names:
                value: Any = exp.column(aliases[names.index(field.name)])
            else:
                value = self._defaults.value_of(field.name)
            items.append(exp.alias_(cast_to(value, field), field.name, quoted=True))
        alias = exp.TableAlias(this=exp.to_identifier("s"), columns=[exp.to_identifier(each) for each in aliases])
        if isinstance(source, exp.Values):
            source.set("alias", alias)
        else:
            source = exp.Subquery(this=source, alias=alias)
        return exp.select(*items, copy=False).from_(source, copy=False)

    def _plain_cells(self, rows: list[list[Any]], used: Sequence[str]) -> list[list[Any]] | None:
        """The cells of all columns as Python values and parameters; None if one is an expression."""
        defaults = [_plain(default_of(self._relation, name)) for name in self._schema.names]
        if any(each is _COMPLEX for each, name in zip(defaults, self._schema.names, strict=True) if name not in used):
            return None
        found = []
        for row in rows:
            cells = list(defaults)
            for name, cell in zip(used, row, strict=True):
                place = self._schema.get_field_index(name)
                cells[place] = _plain(uncast(cell, self._schema.field(place)))
            if any(each is _COMPLEX for each in cells):
                return None
            found.append(cells)
        return found

    def table(self, values: Sequence[Any]) -> pa.Table:
        """The rows. Raises SqlError."""
        found = self.plain_table(values)
        if found is not None:
            return found
        made = with_columns(collected(self._session, self.plan, values, self._text), self._schema)
        assert self._defaults is not None
        return self._defaults.filled(made)

    @property
    def is_plain(self) -> bool:
        """Whether the rows are literals, parameters and defaults alone."""
        return self._plain is not None

    def only_row(self, values: Sequence[Any]) -> list[Any] | None:
        """The cells of the only row; None if there are several rows, or a cell is no literal and no parameter."""
        if self._plain is None or len(self._plain) != 1:
            return None
        cells = [values[each] if isinstance(each, Parameter) else each for each in self._plain[0]]
        return None if any(each is _NOW or each is _UUID or type(each) is Next for each in cells) else cells

    def plain_table(self, values: Sequence[Any]) -> pa.Table | None:
        """The rows, if their values fit without doubt. Raises SqlError."""
        return None if self._plain is None else self._at_once(self._plain, values)

    def _at_once(self, rows: list[list[Any]], values: Sequence[Any]) -> pa.Table | None:
        columns: list[Any] = []
        numbered: list[int] = []
        now = datetime.datetime.now(datetime.UTC)

        def value_of(cell: Any) -> Any:
            if isinstance(cell, Parameter):
                return values[cell]
            return now if cell is _NOW else str(uuid.uuid4()) if cell is _UUID else cell

        for place, field in enumerate(self._schema):
            if any(type(row[place]) is Next for row in rows):
                numbered.append(place)
                columns.append(None)
                continue
            column = _column([value_of(row[place]) for row in rows], field)
            if column is None:
                return None
            columns.append(column)
        for place in numbered:  # when it is clear that DuckDB need not do it all again
            cells = [value_of(row[place]) for row in rows]
            if not all(each is None or type(each) in (int, Next) for each in cells):
                return None
            columns[place] = column_of_numbers(self._numbers(cells), self._schema.field(place))
        return pa.table(columns, schema=self._schema)

    def _numbers(self, cells: list[Any]) -> list[Any]:
        """The cells of one column, with the next numbers of sequences."""
        wanted = Counter(each for each in cells if type(each) is Next)
        taken = {text: iter(numbers_of(self._session, self._relation, text, count)) for text, count in wanted.items()}
        return [next(taken[each]) if type(each) is Next else each for each in cells]


_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d(:\d\d)?)?", re.ASCII)
INFINITE = (float("inf"), float("-inf"))
_COMPLEX, _NOW, _UUID = object(), object(), object()
_KINDS: dict[type, Any] = {
    int: pa.types.is_integer,
    bytes: pa.types.is_binary,
    bool: pa.types.is_boolean,
}


def _plain(cell: Any) -> Any:
    """The value of a literal, a `Parameter`, or _COMPLEX."""
    match cell:
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(cell.this)
        case exp.Literal():
            return cell.name if cell.is_string else _number(cell.name)
        case exp.Neg() if isinstance(cell.this, exp.Literal) and not cell.this.is_string:
            return _number(f"-{cell.this.name}")
        case exp.CurrentTimestamp() if not cell.this:
            return _NOW
        case exp.Uuid():
            return _UUID
        case exp.Parameter() if cell.name.isdigit():
            return Parameter(int(cell.name) - 1)
        case exp.Anonymous() if (name := name_in(cell)) is not None:
            return Next(name)
    return _COMPLEX


def _number(text: str) -> Any:
    return int(text) if text.removeprefix("-").isdigit() else decimal.Decimal(text)


def _column(cells: list[Any], field: pa.Field[Any]) -> Any:
    """The cells as a column; None if one does not fit without doubt."""
    kind = field.type
    try:
        if all(each is None for each in cells):
            return pa.nulls(len(cells), kind)
        if pa.types.is_string(kind):
            if mark_of(field) == JSON or not all(each is None or isinstance(each, str) for each in cells):
                return None
            if mark_of(field) == UUID:
                return _uuids(cells)
            return pa.array(cells, kind)
        if pa.types.is_timestamp(kind):
            return _moments(cells, kind)
        if pa.types.is_decimal(kind):
            return pa.array([None if each is None else decimal.Decimal(str(each)) for each in cells], kind)
        expected = next(
            (check for python, check in _KINDS.items() if all(each is None or type(each) is python for each in cells)), None
        )
        if pa.types.is_floating(kind) and all(each is None or type(each) in (int, float, decimal.Decimal) for each in cells):
            return _floats(cells, field)
        if expected is not None and expected(kind):
            return pa.array(cells, kind)
    except (pa.ArrowException, decimal.InvalidOperation, ValueError, OverflowError, TypeError):
        return None
    return None


def _uuids(cells: list[Any]) -> Any:
    """Texts of UUIDs in lower case; None if one has another spelling."""
    if not all(each is None or UUID_TEXT.fullmatch(each) for each in cells):
        return None
    return pa.array([None if each is None else each.lower() for each in cells], pa.string())


def _floats(cells: list[Any], field: pa.Field[Any]) -> Any:
    """Numbers of which none becomes infinite that was not. Raises SqlError 22003."""
    made = pa.array([None if each is None else float(each) for each in cells], field.type)
    for cell, each in zip(cells, made.to_pylist(), strict=True):
        if each in INFINITE and not (isinstance(cell, float) and cell in INFINITE):
            raise SqlError(OUT_OF_RANGE, f"a value of the column {field.name} is out of range for {postgres_of(field.type)}")
    return made


def _moments(cells: list[Any], kind: Any) -> Any:
    """Times with a zone for a column with a zone, or without for one without; also as texts in the common spelling."""
    moments = [_moment(each) if isinstance(each, str) else each for each in cells]
    if not all(
        each is None or (isinstance(each, datetime.datetime) and (each.tzinfo is None) == (kind.tz is None)) for each in moments
    ):
        return None
    return pa.array(moments, kind)


def _moment(text: str) -> datetime.datetime | str:
    return datetime.datetime.fromisoformat(text) if _MOMENT.fullmatch(text) else text
