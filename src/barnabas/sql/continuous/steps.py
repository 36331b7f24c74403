"""How a source comes to those before it; among them what is made of each row by itself, such as `unnest`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from sqlglot import exp

from barnabas.incremental.plan import Column, Named, Rows, quoted
from barnabas.sql.continuous.joining import ONE
from barnabas.sql.continuous.nodes import Nodes
from barnabas.sql.continuous.parts import NotSplit, Part, free_name, placed, text
from barnabas.sql.continuous.scope import Scope, Source
from barnabas.sql.dialect import to_duckdb


class Step(Struct):
    """How the next source comes to those before it.

    Args:
        part: None for a source that is made of each row by itself.
        side: of an outer join: LEFT, RIGHT or FULL; SEMI or ANTI; empty for an inner join.
        lateral: the source of each row, resolved.
        source: of the lateral one.
        is_lookup: whether a row meets the rows that are there when it comes.
    """

    part: Part | None
    side: str = ""
    conditions: Sequence[Any] = ()
    lateral: Any = None
    source: Source | None = None
    kinds: Sequence[str] = ()
    is_lookup: bool = False


def lateral(nodes: Nodes, scope: Scope, steps: Sequence[Step], number: int, item: Any, join: Any, side: str) -> Step:
    """The step of a source that is made of each row by itself. Raises NotSplit."""
    on = join.args.get("on")
    if side not in ("", "LEFT") or (on is not None and not isinstance(on, exp.Boolean)) or join.args.get("using") or not steps:
        raise NotSplit("a join of what is made of each row")
    made = _unnested(item)
    alias = made.args.get("alias")
    name = str(alias.name) if alias is not None and alias.name else f"_lateral_{len(steps)}"
    columns = [each.name for each in (alias.args.get("columns") or [])] if alias is not None else []
    made.set(
        "alias",
        exp.TableAlias(
            this=exp.to_identifier(name, quoted=True), columns=[exp.to_identifier(each, quoted=True) for each in columns]
        ),
    )
    resolved = _resolved(scope, made)
    inner, kinds = _columns(nodes, scope, steps, resolved, name)
    source = Source(number, name, tuple((each, each) for each in inner))
    scope.add(source)
    return Step(None, side, lateral=resolved, source=source, kinds=kinds)


def _resolved(scope: Scope, item: Any) -> Any:
    inner = item.this.this if isinstance(item, exp.Lateral) and isinstance(item.this, exp.Subquery) else None
    if inner is None:
        return scope.resolved(item)
    if not isinstance(inner, exp.Select) or (
        set(inner.args) - {"expressions", "kind", "hint"}
        and any(inner.args.get(name) for name in inner.args if name != "expressions")
    ):
        raise NotSplit("a lateral query")
    made = item.copy()
    made.this.this.set("expressions", [scope.resolved(each) for each in inner.expressions])
    return made


def _columns(nodes: Nodes, scope: Scope, steps: Sequence[Step], lateral: Any, name: str) -> tuple[list[str], list[str]]:
    """The names and types of what is made of each row."""
    every = [(each.number, column) for each in scope.sources for _, column in each.names]
    kinds = {}
    for step in steps:
        if step.part is not None:
            of_node = {each.name: each.kind for each in nodes.columns(step.part.node)}
            kinds.update({of: of_node[column] for of, column in step.part.columns.items()})
        elif step.source is not None:
            kinds.update(
                {(step.source.number, each): kind for (_, each), kind in zip(step.source.names, step.kinds, strict=True)}
            )
    names = {of: f"c{place}" for place, of in enumerate(every)}
    item = to_duckdb(placed(lateral, lambda of: (ONE, names[of])))
    columns = [Column(names[of], kinds[of]) for of in every]
    found = nodes.kinds(f"SELECT {quoted(name)}.* FROM {ONE} CROSS JOIN {item}", [columns])
    return [each.name for each in found], [each.kind for each in found]


def with_lateral(nodes: Nodes, part: Part, step: Step) -> Part:
    """The rows with what is made of each."""
    assert step.source is not None
    columns = nodes.columns(part.node)
    names = [each.name for each in columns]
    made = [Named(each.name, each.kind, f"{ONE}.{quoted(each.name)}") for each in columns]
    both = dict(part.columns)
    for (_, column), kind in zip(step.source.names, step.kinds, strict=True):
        own = free_name(column, names)
        names.append(own)
        both[step.source.number, column] = own
        made.append(Named(own, kind, f"{quoted(step.source.alias)}.{quoted(column)}"))
    word = "LEFT JOIN" if step.side else "CROSS JOIN"
    source = f"{ONE} {word} {text(step.lateral, part)}{' ON true' if step.side else ''}"
    node = nodes.add(Rows(part.node, tuple(made), None, source))
    return Part(node, both, (), part.not_null)


def _unnested(item: Any) -> Any:
    """`LATERAL VIEW explode(x) t AS y` as `unnest(x) AS t(y)`."""
    if isinstance(item, exp.Lateral) and item.args.get("view"):
        if item.args.get("outer") or not isinstance(item.this, exp.Explode):
            raise NotSplit("LATERAL VIEW of another function")
        return exp.Unnest(expressions=[item.this.this.copy()], alias=item.args["alias"].copy())
    return item.copy()
