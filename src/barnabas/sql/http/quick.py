"""Answers a request for one row by its key in the event loop, as JSON: no thread, no DuckDB.

It is a special case of `surface.py`, which gives the same bytes. Anything unusual has no answer here, and the request goes on there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from typing import Any

from barnabas import limits
from barnabas.sql.interface import Looks, OneRow, ReadsOneRow, Session

_NONE, _ONE = "SELECT 0", "SELECT 1"


class QuickAnswers:
    """Those of one event loop."""

    def __init__(self) -> None:
        self._looks: Looks | None = None
        self._heads: dict[Hashable, bytes] = {}

    async def json(self, session: Session, text: str, values: Sequence[Any]) -> bytes | None:
        """The answer to a statement; None if the session must run it. Nothing else uses the session meanwhile."""
        row = self._row(session, text, values)
        if row is None:
            return None
        from barnabas.sql.http.formats import Json

        if self._looks is None:
            assert isinstance(session, ReadsOneRow)
            self._looks = session.looks()
        answered: asyncio.Future[tuple[bool, bytes | None]] = asyncio.get_running_loop().create_future()

        def answer(is_known: bool, form: bytes | None) -> None:
            if not answered.done():
                answered.set_result((is_known, form))

        kind = ("json", row.kind)
        if not row.ask(self._looks, kind, lambda records: Json.each(row.rows(records)), answer):
            return None
        is_known, form = await answered
        if not is_known:
            return None
        assert isinstance(session, ReadsOneRow)
        session.saw(row)
        head = self._heads.get(kind)
        if head is None:
            if len(self._heads) >= limits.MAX_SQL_PLANS:
                self._heads.clear()
            head = self._heads[kind] = Json().begin(row.schema)
        return head + (form or b"") + Json().end(_NONE if form is None else _ONE)

    def _row(self, session: Session, text: str, values: Sequence[Any]) -> OneRow | None:
        if not isinstance(session, ReadsOneRow) or session.state != "I":
            return None
        prepared = session.known(text)
        return None if prepared is None else session.one_row(prepared, values)

    async def close(self) -> None:
        """Release the connections to the cluster."""
        if self._looks is not None:
            await self._looks.close()
