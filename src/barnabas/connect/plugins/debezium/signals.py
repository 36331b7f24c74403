"""Signals of Debezium, which come as rows of a table of the captured database, and the incremental snapshots that they ask for.

No socket and no clock. What was asked for and how far it has come is part of the offset of the capture, so a start goes on there.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Importance, Type
from barnabas.connect.validators import Range, ValidList, one_of

logger = logging.getLogger(__name__)
OPEN, CLOSE = "snapshot-window-open", "snapshot-window-close"
INCREMENTAL = "incremental"  # type of a snapshot, and the name in the offset
MOST_TABLES = 10_000  # that wait


def with_signals(made: ConfigDef) -> ConfigDef:
    """Add the keys."""
    return (
        made.define(
            "signal.data.collection", Type.STRING, None, importance=Importance.MEDIUM,
            documentation="The table, SCHEMA.TABLE, whose new rows (id, type, data) are signals. The user may insert into it.",
        )
        .define(
            "signal.enabled.channels", Type.LIST, "source", importance=Importance.MEDIUM, validator=ValidList(("source",)),
            documentation="How signals come: source, by the table.",
        )
        .define(
            "incremental.snapshot.chunk.size", Type.INT, 1024, importance=Importance.MEDIUM, validator=Range(1),
            documentation="How many rows of an incremental snapshot are read at once.",
        )
        .define(
            "incremental.snapshot.watermarking.strategy", Type.STRING, "insert_insert", importance=Importance.LOW,
            validator=one_of("insert_insert"), documentation="How the end of a window is marked: by a second row.",
        )
    )  # fmt: skip


class Signal(NamedTuple):
    """A row of the table of signals."""

    id: str
    kind: str
    data: str | None


class Wanted(NamedTuple):
    """A table that is to be read.

    Args:
        condition: which rows; an expression of SQL.
    """

    name: str
    condition: str | None = None


class Reading:
    """What incremental snapshots have to read, and how far that has come.

    Args:
        offset: of the capture.

    Attributes:
        behind: the key of the last row of the first table that is in the log; None: none is.
        most: the greatest key of the table when its reading began; None: it was not asked for.
    """

    def __init__(self, offset: Mapping[str, Any]) -> None:
        state = offset.get(INCREMENTAL, {})
        self.tables = [Wanted(*each) for each in state.get("tables", ())]
        self.behind: list[str] | None = state.get("behind")
        self.most: list[str] | None = state.get("most")
        self.is_paused: bool = state.get("paused", False)

    def offset(self) -> dict[str, Any]:
        """Its part of the offset; empty while there is nothing to read."""
        if not self.tables and not self.is_paused:
            return {}
        state = {
            "tables": [list(each) for each in self.tables],
            "behind": self.behind,
            "most": self.most,
            "paused": self.is_paused,
        }
        return {INCREMENTAL: state}

    def table_ended(self) -> None:
        """The first table is read."""
        self.tables, self.behind, self.most = self.tables[1:], None, None

    def take(self, signal: Signal, captured: Sequence[str]) -> None:
        """Do what a signal says. One that cannot be understood is told in the log, and has no effect.

        Args:
            captured: the names of tables.
        """
        try:
            data = msgspec.json.decode(signal.data or "{}")
            if not isinstance(data, dict):
                raise ValueError("data is no object of JSON")
            self._take(signal, data, captured)
        except (ValueError, TypeError, KeyError, AttributeError, re.error) as error:
            logger.warning("event=signal-not-understood id=%r type=%r reason=%r", signal.id, signal.kind, str(error))

    def _take(self, signal: Signal, data: Mapping[str, Any], captured: Sequence[str]) -> None:
        match signal.kind:
            case "log":
                logger.info("event=signal id=%r message=%r", signal.id, str(data["message"]))
            case "execute-snapshot":
                self._want(_incremental(data), captured)
            case "stop-snapshot":
                self._stop(_incremental(data))
            case "pause-snapshot":
                self.is_paused = True
            case "resume-snapshot":
                self.is_paused = False
            case _:
                raise ValueError("this type of signal is not known")

    def _want(self, data: Mapping[str, Any], captured: Sequence[str]) -> None:
        conditions = {each["data-collection"]: each["filter"] for each in data.get("additional-conditions", ())}
        waiting = {each.name for each in self.tables}
        for pattern in data["data-collections"]:
            names = [each for each in captured if _fits(pattern, each)]
            if not names:
                logger.warning("event=signal-names-no-captured-table table=%r", pattern)
            for name in names:
                if name not in waiting and len(waiting) < MOST_TABLES:
                    condition = next((each for key, each in conditions.items() if _fits(key, name)), None)
                    self.tables.append(Wanted(name, condition or data.get("additional-condition")))
                    waiting.add(name)

    def _stop(self, data: Mapping[str, Any]) -> None:
        patterns = data.get("data-collections")
        kept = [each for each in self.tables if patterns and not any(_fits(pattern, each.name) for pattern in patterns)]
        if kept[:1] != self.tables[:1]:
            self.behind = self.most = None
        self.tables = kept


def _incremental(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The data of a signal for incremental snapshots. Raises ValueError for one of others."""
    kind = str(data.get("type", INCREMENTAL)).lower()
    if kind != INCREMENTAL:
        raise ValueError(f"a snapshot of the type {kind} is not known: there is {INCREMENTAL}")
    return data


def _fits(pattern: str, name: str) -> bool:
    return name == pattern or re.fullmatch(pattern, name, re.IGNORECASE) is not None
