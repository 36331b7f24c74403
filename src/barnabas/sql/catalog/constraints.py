"""The constraints of a table: what its definition keeps of UNIQUE, CHECK and FOREIGN KEY. The statements that write to
the table keep the first two."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from barnabas.sql.catalog.names import shown_name

MOST_NAME_BYTES = 63  # of a name that is made, as in Postgres


class UniqueDefinition(Struct, frozen=True, omit_defaults=True):
    """Columns whose values no two rows have in common.

    Args:
        is_nullable: whether rows with a null never have the same values; otherwise nulls are equal (NULLS NOT DISTINCT).
        is_index: whether CREATE UNIQUE INDEX made it; then it is no constraint.
        is_primary: whether ALTER TABLE … ADD PRIMARY KEY made it. The keys of records are not of its columns.
    """

    name: str
    columns: tuple[str, ...]
    is_nullable: bool = True
    is_index: bool = False
    is_primary: bool = False

    @property
    def text(self) -> str:
        """As ALTER TABLE … ADD CONSTRAINT has it, behind the name."""
        return f"PRIMARY KEY ({self._listed})" if self.is_primary else self.declared

    @property
    def declared(self) -> str:
        """As CREATE TABLE has it for a table over the same records, behind CONSTRAINT and the name."""
        return f"UNIQUE {'' if self.is_nullable or self.is_primary else 'NULLS NOT DISTINCT '}({self._listed})"

    @property
    def _listed(self) -> str:
        return ", ".join(map(shown_name, self.columns))


class CheckDefinition(Struct, frozen=True, omit_defaults=True):
    """A condition that no row makes false.

    Args:
        condition: the text of an expression of the columns.
        columns: those that it names.
        is_valid: whether the rows that were there before it were looked at.
    """

    name: str
    condition: str
    columns: tuple[str, ...] = ()
    is_valid: bool = True

    @property
    def text(self) -> str:
        """As CREATE TABLE has it, behind CONSTRAINT and the name."""
        return f"CHECK ({self.condition})"


class IndexDefinition(Struct, frozen=True, omit_defaults=True):
    """An index of columns that CREATE INDEX made, for the catalogue alone.

    Args:
        orders: of each column, as `pg_index.indoption` has it: 1 for DESC, 2 for NULLS FIRST, added up.
    """

    name: str
    columns: tuple[str, ...]
    orders: tuple[int, ...] = ()


class ForeignKeyDefinition(Struct, frozen=True, omit_defaults=True):
    """Columns that refer to a row of a table. No statement looks whether the row is there.

    Args:
        table: the name of the definition that it refers to.
        referenced: the columns there, in the order of `columns`.
        on_delete, on_update: an action in words, which no statement takes.
        is_full: whether it is MATCH FULL.
        is_deferrable, is_deferred: DEFERRABLE, and INITIALLY DEFERRED.
        is_valid: whether it was declared without NOT VALID.
    """

    name: str
    columns: tuple[str, ...]
    table: str
    referenced: tuple[str, ...]
    on_delete: str = "NO ACTION"
    on_update: str = "NO ACTION"
    is_full: bool = False
    is_deferrable: bool = False
    is_deferred: bool = False
    is_valid: bool = True

    def text(self, table: str) -> str:
        """As CREATE TABLE has it, behind CONSTRAINT and the name.

        Args:
            table: the name of the other table, as statements have it.
        """
        own, other = (", ".join(map(shown_name, each)) for each in (self.columns, self.referenced))
        words = [f"FOREIGN KEY ({own}) REFERENCES {table}({other})"]
        words += ["MATCH FULL"] if self.is_full else []
        words += [f"ON UPDATE {self.on_update}"] if self.on_update != "NO ACTION" else []
        words += [f"ON DELETE {self.on_delete}"] if self.on_delete != "NO ACTION" else []
        words += ["DEFERRABLE"] if self.is_deferrable else []
        words += ["INITIALLY DEFERRED"] if self.is_deferred else []
        return " ".join(words)


def free_name(table: str, columns: Sequence[str], ending: str, used: Collection[str]) -> str:
    """The name of a constraint that has none, as Postgres makes it: `table_column_key`, with a number if need be."""
    middle = "".join(f"_{each}" for each in columns)
    for number in range(len(used) + 1):
        tail = f"_{ending}{number or ''}"
        name = f"{table}{middle}"[: MOST_NAME_BYTES - len(tail)] + tail
        if name not in used:
            break
    return name
