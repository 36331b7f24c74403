"""The columns that a job fills by itself: defaults, generated columns, and the look at CHECK constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.incremental.plan import Named, quoted
from barnabas.sql.catalog.relations import MemoryRelation
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.continuous.planned import Filled
from barnabas.sql.dialect import parse_expression, to_duckdb
from barnabas.sql.duck.enums import EnumDefinition, enum_of
from barnabas.sql.duck.types import duckdb_of
from barnabas.sql.planning.query import QueryPlan
from barnabas.sql.statements.enforcement import checks_plan
from barnabas.sql.statements.generated import generated_of
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.numbered import sequence_of
from barnabas.sql.statements.select import checked
from barnabas.sql.statements.target import cast_to, default_of
from barnabas.sql.states import not_supported
from barnabas.sql.writing.fitting import CHAR, VARCHAR, too_long
from barnabas.tables.column_types import size_of
from barnabas.tables.declaration import MAX_FRACTION

ROWS = "__rows"


def filled(session: Host, relation: TopicRelation, given: Sequence[str], text: str) -> list[Filled]:
    """The columns that the query of a job does not give, as DuckDB makes them in each micro-batch. Raises SqlError."""
    steps = [
        _defaults(session, relation, given, text), _generated(session, relation, text), _sizes(relation),
        _checks(session, relation, text),
    ]  # fmt: skip
    return [each for each in steps if each.columns]


def _defaults(session: Host, relation: TopicRelation, given: Sequence[str], text: str) -> Filled:
    items: dict[str, Any] = {}
    for field in relation.columns:
        if field.name in given or field.name in generated_of(relation):
            continue
        if sequence_of(relation, field.name) is not None:
            hint = "give it a value, such as one of the stream's columns"
            raise not_supported(f'a job cannot number the column "{field.name}" by a sequence', hint=hint)
        items[field.name] = cast_to(default_of(relation, field.name), field)
    return _filled(relation, items, checked(session, _select(items), text)) if items else Filled(())


def _generated(session: Host, relation: TopicRelation, text: str) -> Filled:
    generated = generated_of(relation)
    if not generated:
        return Filled(())
    items = {name: cast_to(parse_expression(each), relation.columns.field(name)) for name, each in generated.items()}
    source = MemoryRelation(ROWS, pa.schema([each for each in relation.columns if each.name not in generated]))
    return _filled(relation, items, checked(session, _select(items).from_(ROWS), text, (), {ROWS: source}))


def _sizes(relation: TopicRelation) -> Filled:
    """Values that fit the sizes of their columns: what `writing.fitting` does with the rows of a statement."""
    fields = [relation.columns.field(name) for name in relation.sized]
    return Filled([
        *(Named(each.name, duckdb_of(each.type), _sized(each, *sized)) for each in fields if (sized := size_of(each)) is not None),
        *(Named(each.name, duckdb_of(each.type), _labelled(each, found)) for each in fields if (found := enum_of(each)) is not None),
    ])  # fmt: skip


def _labelled(field: pa.Field[Any], definition: EnumDefinition) -> str:
    """A text, or an array of texts, that must be labels."""
    name, is_array = quoted(field.name), pa.types.is_list(field.type)
    texts = ", ".join("'" + each.replace("'", "''") + "'" for each in definition.labels)
    inside = f"len(list_filter({name}, x -> x NOT IN ({texts}))) = 0" if is_array else f"{name} IN ({texts})"
    start = f"invalid input value for enum {definition.shown}: ".replace("'", "''")
    told = f"CAST(error('{start}\"' || CAST({name} AS VARCHAR) || '\"') AS {duckdb_of(field.type)})"
    return f"CASE WHEN {name} IS NULL OR {inside} THEN {name} ELSE {told} END" if definition.labels else name


def _sized(field: pa.Field[Any], word: str, size: int) -> str:
    name = quoted(field.name)
    if word in (CHAR, VARCHAR):
        message = too_long(word, size).message
        value = f"rtrim({name}, ' ')" if word == CHAR else name
        short = f"CASE WHEN length({value}) <= {size} THEN {value} ELSE rtrim({value}, ' ') || repeat(' ', {size}) END"
        return (
            f"CASE WHEN length(rtrim({name}, ' ')) > {size} THEN CAST(error('{message}') AS VARCHAR)"
            f" ELSE {value if word == CHAR else f'left({short}, {size})'} END"
        )
    step = 10 ** (MAX_FRACTION - size)
    kind = duckdb_of(field.type)
    if word == "time":
        return f"CAST({name} - to_microseconds(epoch_us({name}) % {step}) AS TIME)"
    rounded = f"make_timestamp((epoch_us({name}) + {step // 2}) // {step} * {step})"
    return rounded if kind == "TIMESTAMP" else f"{rounded} AT TIME ZONE 'UTC'"


def _checks(session: Host, relation: TopicRelation, text: str) -> Filled:
    """A row that makes a condition false is the error of its micro-batch: one column asks for it."""
    definition = relation.definition
    if definition is None or not definition.checks:
        return Filled(())
    plan = checks_plan(session, relation, definition.checks, text)
    field = relation.columns.field(0)
    kind = duckdb_of(field.type)
    cases = []
    for check, item in zip(definition.checks, plan.tree.expressions, strict=True):
        message = f'new row for relation "{relation.name}" violates check constraint "{check.name}"'.replace("'", "''")
        cases.append(f"WHEN ({_over_rows(item.unalias())}) IS FALSE THEN CAST(error('{message}') AS {kind})")
    column = Named(field.name, kind, f"CASE {' '.join(cases)} ELSE {quoted(field.name)} END")
    return Filled((column,), plan.in_python)


def _select(items: Mapping[str, Any]) -> exp.Select:
    return exp.select(*(exp.alias_(value, name, quoted=True) for name, value in items.items()), copy=False)


def _filled(relation: TopicRelation, items: Mapping[str, Any], plan: QueryPlan) -> Filled:
    kinds = {name: duckdb_of(relation.columns.field(name).type) for name in items}
    made = zip(items, plan.tree.expressions, strict=True)
    return Filled([Named(name, kinds[name], _over_rows(item.unalias())) for name, item in made], plan.in_python)


def _over_rows(expression: Any) -> str:
    """DuckDB's text of an expression whose columns are those of the step before."""
    tree = expression.copy()
    for column in [tree] if isinstance(tree, exp.Column) else list(tree.find_all(exp.Column)):
        column.set("table", None)
    return to_duckdb(tree)
