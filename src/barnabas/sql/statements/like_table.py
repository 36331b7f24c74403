"""CREATE TABLE … LIKE: the columns of a table for another one. INCLUDING adds its defaults, its constraints and its primary key."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from barnabas.sql.catalog.names import shown_name
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import parse_tokens, tokens_of
from barnabas.sql.duck.types import shown_type
from barnabas.sql.planning.names import parts_of, position_in
from barnabas.sql.statements.host import Host
from barnabas.sql.states import not_supported

_ALL = ("DEFAULTS", "CONSTRAINTS", "INDEXES")
_WITHOUT_EFFECT = ("COMMENTS", "STORAGE", "COMPRESSION", "STATISTICS")


def with_columns_alike(session: Host, tree: Any) -> Any:
    """A CREATE TABLE with columns in the place of LIKE. Raises SqlError."""
    found = list(tree.find_all(exp.LikeProperty))
    if not found:
        return tree
    if not isinstance(tree.this, exp.Schema):  # Spark's form: LIKE stands behind the name
        properties = tree.args["properties"]
        properties.set("expressions", [each for each in properties.expressions if not isinstance(each, exp.LikeProperty)])
        tree.set("this", exp.Schema(this=tree.this, expressions=[column for like in found for column in _columns(session, like)]))
        return tree
    made: list[Any] = []
    for each in tree.this.expressions:
        made += _columns(session, each) if isinstance(each, exp.LikeProperty) else [each]
    tree.this.set("expressions", made)
    return tree


def _columns(session: Host, like: Any) -> list[Any]:
    """The columns and constraints that a LIKE stands for. Raises SqlError."""
    relation = session.find(parts_of(like.this), position_in(like.this))
    included = _included(like)
    definition = relation.definition if isinstance(relation, TopicRelation) else None
    lines = []
    for field in relation.columns:
        column = definition.column(field.name) if definition is not None else None
        default = column.default if column is not None and "DEFAULTS" in included and not column.generated else None
        has_more = default is not None and default.startswith("nextval(")
        if has_more or (column is not None and column.generated and included.issuperset(_ALL)):
            text = "LIKE INCLUDING of a numbered or generated column is not supported"
            raise not_supported(text, position_in(like.this), "LIKE name INCLUDING CONSTRAINTS INCLUDING INDEXES")
        line = f"{shown_name(field.name)} {shown_type(field)}{'' if field.nullable else ' NOT NULL'}"
        lines.append(line if default is None else f"{line} DEFAULT {default}")
    if definition is not None and "INDEXES" in included:
        if definition.key and definition.is_keyed and not definition.has_row_names:
            lines.append(f"PRIMARY KEY ({', '.join(map(shown_name, definition.key))})")
        lines += [each.declared for each in definition.unique]
    if definition is not None and "CONSTRAINTS" in included:
        lines += [f"CONSTRAINT {shown_name(each.name)} {each.text}" for each in definition.checks]
    text = f"CREATE TABLE t ({', '.join(lines)})"
    return list(parse_tokens(text, tokens_of(text)).this.expressions)


def _included(like: Any) -> set[str]:
    """The kinds of things beside columns that a LIKE brings. Raises SqlError."""
    included: set[str] = set()
    for each in like.expressions:
        word = each.args["value"].name.upper()
        words = set(_ALL) if word == "ALL" else {word}
        if not words <= {*_ALL, *_WITHOUT_EFFECT, "GENERATED", "IDENTITY"}:
            raise not_supported(f"LIKE with {word} is not supported", position_in(like.this), f"{', '.join(_ALL)} or ALL")
        included = included | words if str(each.this).upper() == "INCLUDING" else included - words
    refused = included & {"GENERATED", "IDENTITY"}
    if refused:
        raise not_supported(
            f"LIKE INCLUDING {refused.pop()} is not supported", position_in(like.this), f"{', '.join(_ALL)} or ALL"
        )
    return included
