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
    given: Sequence[pa.DataType | None] = field(default=())


def done(text: str, tag: str, action: Callable[[], None] | None = None, *, ends_transaction: bool = False) -> Ready:
    """A statement without rows and parameters."""

    def run(_: Sequence[Any]) -> Result:
        if action is not None:
            action()
        return Done(tag)

    return Ready(text, run, ends_transaction=ends_transaction)
