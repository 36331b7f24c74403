"""A statement that was checked: its types, and the work that it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from barnabas.sql.interface import Result
from barnabas.sql.results import Done
from barnabas.sql.statements.key_read import KeyRead

Run = Callable[[Sequence[Any]], Result]


@dataclass(slots=True)
class Ready:
    """A `Prepared` of this engine.

    Args:
        run: the work, with values for the parameters.
        copy_from, copy_to: that of a COPY.
        ends_transaction: whether it may run in a transaction that failed.
        version: of the catalogue that it was checked against; None if it asks none.
        lasts: whether it depends on nothing but declared tables and settings.
        key_read: the same statement as a query for one row.
        plain: the work, if values for the parameters have the same effect as literals in their place; it gives None for others.
        bound: the template that it is of, and the values of its literals.
        again: the same statement, checked against a later version.
    """

    text: str
    run: Run
    schema: pa.Schema | None = None
    parameters: Sequence[pa.DataType] = ()
    copy: str | None = None
    copy_from: Callable[[Iterator[bytes]], Result] | None = None
    copy_to: Callable[[], Iterator[bytes]] | None = None
    ends_transaction: bool = False
    version: object = None
    lasts: bool = False
    key_read: KeyRead | None = None
    plain: Callable[[Sequence[Any]], Result | None] | None = None
    bound: tuple[Ready, Sequence[Any]] | None = None
    given: Sequence[pa.DataType | None] = field(default=())
    again: Ready | None = None

    def with_values(self, text: str, values: Sequence[Any], checked: Callable[[], Ready]) -> Ready:
        """The statement with literals in place of its parameters.

        Args:
            text: of that statement.
            checked: checks it, for values that are not plain.
        """
        plain = self.plain
        assert plain is not None

        def run(_: Sequence[Any]) -> Result:
            found = plain(values)
            return checked().run(()) if found is None else found

        return Ready(text, run, self.schema, version=self.version, bound=(self, values))


def done(text: str, tag: str, action: Callable[[], None] | None = None, *, ends_transaction: bool = False) -> Ready:
    """A statement without rows and parameters."""

    def run(_: Sequence[Any]) -> Result:
        if action is not None:
            action()
        return Done(tag)

    return Ready(text, run, ends_transaction=ends_transaction)
