"""FOREIGN KEY and REFERENCES: from the words to the definition, and what happens to references when tables change.

Definitions keep references and the catalogue shows them. No statement looks whether the row that another one refers to is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow.types as pt
from sqlglot import exp

from barnabas import limits
from barnabas.sql.catalog.constraints import ForeignKeyDefinition
from barnabas.sql.catalog.definitions import ColumnDefinition, TableDefinition
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.interface import Notice, SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.statements.columns import folded
from barnabas.sql.statements.constraints import UNNAMED, name_of_constraint
from barnabas.sql.statements.host import Host
from barnabas.sql.states import LIMIT_EXCEEDED, UNDEFINED_COLUMN, UNDEFINED_OBJECT, WRONG_OBJECT
from barnabas.sql.views.dependents import DEPENDENT

NOT_ENFORCED = Notice("foreign keys are not enforced", "WARNING", "01000", "a row may refer to one that is not there")
INVALID_FOREIGN_KEY = "42830"
_ACTIONS = ("NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT")


class Reference(msgspec.Struct, frozen=True):
    """A reference as a statement has it.

    Args:
        name: of the constraint; None if the statement gives none.
        columns: of the table that refers.
        node: what REFERENCES has.
    """

    name: str | None
    columns: tuple[str, ...]
    node: Any


def take_references(schema: exp.Schema) -> list[Reference]:
    """Take the references out of a declaration: those of columns, and those of the table. Raises SqlError."""
    found: list[Reference] = []
    kept = []
    for item in schema.expressions:
        made = reference_in(item)
        if made is not None:
            found.append(made)
            continue
        kept.append(item)
        if isinstance(item, exp.ColumnDef):
            of_column = [each for each in item.constraints if isinstance(each.kind, exp.Reference)]
            found += [Reference(each.this.name if each.this else None, (folded(item.this),), each.kind) for each in of_column]
            item.set("constraints", [each for each in item.constraints if not isinstance(each.kind, exp.Reference)])
    schema.set("expressions", kept)
    return found


def reference_in(item: Any) -> Reference | None:
    """The reference that an entry of a declaration is; None if it is of another kind."""
    name, inner = None, item
    if isinstance(item, exp.Constraint) and item.expressions:
        name, inner = item.this.name, item.expressions[0]
    if not isinstance(inner, exp.ForeignKey):
        return None
    return Reference(None if name == UNNAMED else name, tuple(map(folded, inner.expressions)), inner.args["reference"])


def with_references(
    session: Host, definition: TableDefinition, found: Sequence[Reference], *, is_valid: bool = True
) -> TableDefinition:
    """The definition with more references. Raises SqlError."""
    for each in found:
        made = _reference(session, definition, each, is_valid=is_valid)
        definition = msgspec.structs.replace(definition, foreign_keys=(*definition.foreign_keys, made))
    if len(definition.foreign_keys) > limits.MAX_SQL_INDEXES:
        raise SqlError(LIMIT_EXCEEDED, f"a table can have at most {limits.MAX_SQL_INDEXES} foreign keys")
    return definition


def _reference(session: Host, definition: TableDefinition, found: Reference, *, is_valid: bool) -> ForeignKeyDefinition:
    target = found.node.this
    table, named = (
        (target.this, [folded(each) for each in target.expressions]) if isinstance(target, exp.Schema) else (target, [])
    )
    other = _other(session, definition, table)
    columns = [_column(definition, each, found.node) for each in found.columns]
    referenced = [_column(other, each, found.node) for each in named] if named else _primary(other)
    if not referenced:
        raise SqlError(
            UNDEFINED_OBJECT, f'there is no primary key for referenced table "{other.plain_name}"', position=position_in(table)
        )
    if len(columns) != len(referenced):
        raise SqlError(
            INVALID_FOREIGN_KEY,
            "number of referencing and referenced columns for foreign key disagree",
            position=position_in(table),
        )
    if not is_unique(other, [each.name for each in referenced]):
        raise SqlError(
            INVALID_FOREIGN_KEY, f'there is no unique constraint matching given keys for referenced table "{other.plain_name}"',
            position=position_in(table),
        )  # fmt: skip
    name = name_of_constraint(definition, found.name, [each.name for each in columns], "fkey", found.node)
    for one, two in zip(columns, referenced, strict=True):
        _check_types(name, one, two)
    return _with_options(
        ForeignKeyDefinition(
            name, tuple(each.name for each in columns), other.name, tuple(each.name for each in referenced), is_valid=is_valid
        ),
        [" ".join(str(each).upper().split()) for each in found.node.args.get("options") or ()],
    )


def _other(session: Host, definition: TableDefinition, table: Any) -> TableDefinition:
    """The table that a reference names. Raises SqlError."""
    parts = [folded(part) for part in table.parts]
    if parts[-1] == definition.plain_name and (
        len(parts) == 1 or ".".join(parts[-2:]) in (definition.name, f"public.{definition.name}")
    ):
        return definition
    relation = session.find(parts, position_in(table))
    found = relation.definition if isinstance(relation, TopicRelation) else None
    if found is None or found.view is not None:
        raise SqlError(WRONG_OBJECT, f'referenced relation "{relation.name}" is not a table', position=position_in(table))
    return found


def _column(definition: TableDefinition, name: str, node: Any) -> ColumnDefinition:
    found = definition.column(name)
    if found is None:
        raise SqlError(
            UNDEFINED_COLUMN, f'column "{name}" referenced in foreign key constraint does not exist', position=position_in(node)
        )
    return found


def _primary(definition: TableDefinition) -> list[ColumnDefinition]:
    names = definition.key if definition.is_keyed else ()
    names = names or next((each.columns for each in definition.unique if each.is_primary), ())
    return [each for name in names if (each := definition.column(name)) is not None]


def is_unique(definition: TableDefinition, names: Sequence[str]) -> bool:
    """Whether no two rows of a table have the same values in these columns."""
    keys = [definition.key] if definition.is_keyed and definition.key else []
    return any(set(each) == set(names) for each in (*keys, *(each.columns for each in definition.unique)))


def _check_types(name: str, one: ColumnDefinition, two: ColumnDefinition) -> None:
    """Raises SqlError 42804 if values of two columns cannot be equal."""
    first, second = one.field, two.field
    numbers = [pt.is_integer(each.type) or pt.is_decimal(each.type) or pt.is_floating(each.type) for each in (first, second)]
    if all(numbers) or (first.type == second.type and (first.metadata is None) == (second.metadata is None)):
        return
    if pt.is_string(first.type) and pt.is_string(second.type) and "uuid" not in (one.kind, two.kind):
        return
    raise SqlError(
        "42804", f'foreign key constraint "{name}" cannot be implemented',
        detail=f'Key columns "{one.name}" and "{two.name}" are of incompatible types: {one.kind} and {two.kind}.',
    )  # fmt: skip


def _with_options(made: ForeignKeyDefinition, options: Sequence[str]) -> ForeignKeyDefinition:
    """The reference with ON DELETE, ON UPDATE, MATCH and DEFERRABLE. Raises SqlError."""
    changes: dict[str, Any] = {}
    for each in options:
        for word, field in (("ON DELETE ", "on_delete"), ("ON UPDATE ", "on_update")):
            if each.startswith(word) and each.removeprefix(word) in _ACTIONS:
                changes[field] = each.removeprefix(word)
        if each == "MATCH FULL":
            changes["is_full"] = True
        elif each == "DEFERRABLE":
            changes["is_deferrable"] = True
        elif each == "INITIALLY DEFERRED":
            changes |= {"is_deferrable": True, "is_deferred": True}
    return msgspec.structs.replace(made, **changes)


def referring(tables: Mapping[str, TableDefinition], name: str) -> list[tuple[TableDefinition, ForeignKeyDefinition]]:
    """The references of other tables to a table."""
    return [(each, key) for each in tables.values() if each.name != name for key in each.foreign_keys if key.table == name]


def check_not_referred(tables: Mapping[str, TableDefinition], name: str, leaving: Sequence[str]) -> None:
    """Raises SqlError 2BP01 if tables that stay refer to a table that goes."""
    found = [(table, key) for table, key in referring(tables, name) if table.name not in leaving]
    if found:
        lines = [f"constraint {key.name} on table {table.name} depends on table {name}" for table, key in found]
        raise SqlError(
            DEPENDENT, f"cannot drop table {name} because other objects depend on it", detail="\n".join(lines),
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )  # fmt: skip


def without_references(tables: Mapping[str, TableDefinition], name: str) -> dict[str, TableDefinition | None]:
    """The other tables that refer to a table, without these references."""
    return {
        table.name: msgspec.structs.replace(table, foreign_keys=tuple(each for each in table.foreign_keys if each.table != name))
        for table, _ in referring(tables, name)
    }


def check_still_unique(tables: Mapping[str, TableDefinition], after: TableDefinition) -> None:
    """Raises SqlError 2BP01 if references to a table lose the key that they need. Names of columns are those before a change."""
    own = [(after, each) for each in after.foreign_keys if each.table == after.name]
    for table, key in (*referring(tables, after.name), *own):
        if not is_unique(after, key.referenced):
            raise SqlError(
                DEPENDENT, f"cannot drop the key ({', '.join(key.referenced)}) of table {after.name} because other objects depend on it",
                detail=f"constraint {key.name} on table {table.name} depends on it",
                hint="DROP the constraint first",
            )  # fmt: skip


def with_renamed(made: TableDefinition, of: str, old: str, new: str) -> TableDefinition:
    """The definition with another name of a column of the table `of` in its references."""

    def other(key: ForeignKeyDefinition) -> ForeignKeyDefinition:
        columns = _renamed(key.columns, old, new) if made.name == of else key.columns
        referenced = _renamed(key.referenced, old, new) if key.table == of else key.referenced
        return msgspec.structs.replace(key, columns=columns, referenced=referenced)

    return msgspec.structs.replace(made, foreign_keys=tuple(map(other, made.foreign_keys)))


def _renamed(names: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    return tuple(new if each == old else each for each in names)


def with_renamed_table(made: TableDefinition, old: str, new: str) -> TableDefinition:
    """The definition with another name of a table in its references."""
    keys = tuple(msgspec.structs.replace(each, table=new) if each.table == old else each for each in made.foreign_keys)
    return msgspec.structs.replace(made, foreign_keys=keys)
