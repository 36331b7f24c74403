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
from barnabas.connect.config_types import Importance, Type, invalid
from barnabas.connect.java_patterns import java_pattern
from barnabas.connect.plugins.debezium.envelope import CREATE
from barnabas.connect.validators import Range, ValidList, one_of

logger = logging.getLogger(__name__)
OPEN, CLOSE = "snapshot-window-open", "snapshot-window-close"
INCREMENTAL = "incremental"  # type of a snapshot, and the name in the offset
CONSUMER = "signal.consumer."
POSITION = "signals"  # name in the offset
MOST_TABLES = 10_000  # that wait


def with_signals(made: ConfigDef) -> ConfigDef:
    """Add the keys."""
    return (
        made.define(
            "signal.data.collection", Type.STRING, None, importance=Importance.MEDIUM,
            documentation="The table, SCHEMA.TABLE, whose new rows (id, type, data) are signals. The user may insert into it.",
        )
        .define(
            "signal.enabled.channels", Type.LIST, "source", importance=Importance.MEDIUM, validator=ValidList(("source", "kafka")),
            documentation="How signals come: source, by the table; kafka, by a topic.",
        )
        .define(
            "signal.kafka.topic", Type.STRING, None, importance=Importance.HIGH,
            documentation="The topic of signals; PREFIX-signal by default. Signals have the key topic.prefix, and are in the partition 0.",
        )
        .define(
            "signal.kafka.bootstrap.servers", Type.STRING, None, importance=Importance.HIGH,
            documentation="The cluster that has the topic of signals. signal.consumer.NAME is an option of the client.",
        )
        .define(
            "signal.poll.interval.ms", Type.LONG, 5000, importance=Importance.MEDIUM, validator=Range(1),
            documentation="How often the topic of signals is read, in milliseconds.",
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


def signal_errors(config: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """What is wrong beyond the definitions, by key."""
    name, servers = config.get("signal.data.collection", ""), config.get("signal.kafka.bootstrap.servers", "")
    found = dict[str, str]()
    if "kafka" in _listed(config, "signal.enabled.channels"):
        if not servers:
            found["signal.kafka.bootstrap.servers"] = "The channel kafka needs it"
        if not name:
            found["signal.data.collection"] = "Incremental snapshots need it, by whichever channel signals come"
    if name and not all(name.partition(".")):
        found["signal.data.collection"] = "It is no SCHEMA.TABLE"
    elif name and CREATE in _listed(config, "skipped.operations"):
        found["signal.data.collection"] = "Signals are new rows, and skipped.operations leaves new rows out"
    return {key: [str(invalid(key, config.get(key), reason))] for key, reason in found.items()}


def _listed(config: Mapping[str, str], key: str) -> list[str]:
    return [each.strip() for each in config.get(key, "").split(",")]


class Signal(NamedTuple):
    """A row of the table of signals."""

    id: str
    kind: str
    data: str | None


class Wanted(NamedTuple):
    """A table that is to be read.

    Args:
        condition: which rows; an expression of SQL.
        key: a column that orders the rows; None: the columns of the primary key do.
    """

    name: str
    condition: str | None = None
    key: str | None = None


class Reading:
    """What incremental snapshots have to read, and how far that has come.

    Args:
        offset: of the capture.

    Attributes:
        behind: the key of the last row of the first table that is in the log; None: none is.
        most: the greatest key of the table when its reading began; None: it was not asked for.
        position: in the topic of signals; None: it was not read.
        turn: a number that changes when the first table is another one, or is read from its beginning.
    """

    def __init__(self, offset: Mapping[str, Any]) -> None:
        state = offset.get(INCREMENTAL, {})
        self.tables = [Wanted(*each) for each in state.get("tables", ())]
        self.behind: list[str] | None = state.get("behind")
        self.most: list[str] | None = state.get("most")
        self.is_paused: bool = state.get("paused", False)
        self.position: int | None = offset.get(POSITION)
        self.turn = 0

    def offset(self) -> dict[str, Any]:
        """Its part of the offset; empty while there is nothing to read, and no topic of signals."""
        position = {} if self.position is None else {POSITION: self.position}
        if not self.tables:
            return position
        state = {
            "tables": [list(each) for each in self.tables],
            "behind": self.behind,
            "most": self.most,
            "paused": self.is_paused,
        }
        return {INCREMENTAL: state, **position}

    def table_ended(self) -> None:
        """The first table is read."""
        self._begin(self.tables[1:])

    def _begin(self, tables: Sequence[Wanted]) -> None:
        """Read tables from the beginning of the first one. Without tables there is nothing to pause."""
        self.tables, self.behind, self.most = list(tables), None, None
        self.is_paused = self.is_paused and bool(tables)
        self.turn += 1

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
        except KeyError as error:
            self._refuse(signal, f"data has no field {error}")
        except (ValueError, TypeError, AttributeError, re.error) as error:
            self._refuse(signal, str(error))

    @staticmethod
    def _refuse(signal: Signal, reason: str) -> None:
        logger.warning("event=signal-not-understood id=%r type=%r reason=%r", signal.id, signal.kind, reason)

    def _take(self, signal: Signal, data: Mapping[str, Any], captured: Sequence[str]) -> None:
        match signal.kind:
            case "log":
                logger.info("event=signal id=%r message=%r", signal.id, str(data["message"]))
            case "execute-snapshot":
                self._want(_incremental(data), captured)
            case "stop-snapshot":
                self._stop(_incremental(data))
            case "pause-snapshot":
                self.is_paused = bool(self.tables)
            case "resume-snapshot":
                self.is_paused = False
            case _:
                raise ValueError("this type of signal is not known")

    def _want(self, data: Mapping[str, Any], captured: Sequence[str]) -> None:
        conditions = [(str(each["data-collection"]), str(each["filter"])) for each in data.get("additional-conditions") or ()]
        key = str(data.get("surrogate-key") or "") or None
        for pattern in _patterns(data["data-collections"]):
            names = [each for each in captured if _fits(pattern, each)]
            if not names:
                logger.warning("event=signal-names-no-captured-table table=%r", pattern)
            for name in names:
                condition = next((each for known, each in conditions if _fits(known, name)), data.get("additional-condition"))
                self._add(Wanted(name, condition or None, key))

    def _add(self, wanted: Wanted) -> None:
        if wanted in self.tables[1:]:
            return
        if len(self.tables) >= MOST_TABLES:
            raise ValueError(f"{MOST_TABLES} tables wait")
        self.tables.append(wanted)

    def _stop(self, data: Mapping[str, Any]) -> None:
        patterns = _patterns(data.get("data-collections") or [".*"])
        kept = [each for each in self.tables if not any(_fits(pattern, each.name) for pattern in patterns)]
        if kept[:1] != self.tables[:1]:
            self._begin(kept)
        self.tables = kept


def _patterns(value: Any) -> Sequence[str]:
    if not isinstance(value, list) or not value:
        raise ValueError("data-collections is no list of names")
    return [str(each).strip() for each in value]


def _incremental(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The data of a signal for incremental snapshots. Raises ValueError for one of others."""
    kind = str(data.get("type", INCREMENTAL)).lower()
    if kind != INCREMENTAL:
        raise ValueError(f"a snapshot of the type {kind} is not known: there is {INCREMENTAL}")
    return data


def _fits(pattern: str, name: str) -> bool:
    return name == pattern or java_pattern(pattern, re.IGNORECASE).fullmatch(name) is not None
