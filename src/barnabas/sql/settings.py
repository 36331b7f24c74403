"""The parameters of a session: SHOW, SET, `current_setting`, and what a Postgres client is told at the start."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from barnabas.sql.interface import Notice, SqlError
from barnabas.sql.states import INVALID_PARAMETER, UNDEFINED_OBJECT
from barnabas.sql.zones import UTC_ZONE, Zone, zone_of

SERVER_VERSION = "16.4"  # the version of Postgres whose protocol and catalogue clients find
DIALECTS = ("spark", "postgres")
ISOLATION = ("read committed", "read uncommitted", "repeatable read", "serializable")  # all of them are the first
STRONGER = ISOLATION[2:]
_UNITS_MS = {"us": 0.001, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*([a-z]*)\s*\Z")


class _Parameter(NamedTuple):
    """A parameter.

    Args:
        kind: `text`, `bool`, `ms`, `int`, `count` from 0 on, `encoding`, `zone`, `dates`, or `fixed` for one that cannot be changed.
        choices: the values that it takes; empty for any.
    """

    name: str
    default: str
    kind: str = "text"
    choices: tuple[str, ...] = ()


# Of Postgres' planner: clients and test suites set them. They change nothing here, as DuckDB plans.
_PLANS = (
    "async_append", "bitmapscan", "gathermerge", "hashagg", "hashjoin", "incremental_sort", "indexonlyscan", "indexscan", "material",
    "memoize", "mergejoin", "nestloop", "parallel_append", "parallel_hash", "partition_pruning", "partitionwise_aggregate",
    "partitionwise_join", "seqscan", "sort", "tidscan",
)  # fmt: skip
_PLANNER = {
    "work_mem": "4MB", "maintenance_work_mem": "64MB", "temp_buffers": "8MB", "effective_cache_size": "4GB", "hash_mem_multiplier": "2",
    "random_page_cost": "4", "seq_page_cost": "1", "cpu_tuple_cost": "0.01", "cpu_index_tuple_cost": "0.005",
    "cpu_operator_cost": "0.0025", "parallel_setup_cost": "1000", "parallel_tuple_cost": "0.1", "min_parallel_table_scan_size": "8MB",
    "min_parallel_index_scan_size": "512kB", "max_parallel_workers": "8", "max_parallel_workers_per_gather": "2",
    "parallel_leader_participation": "on", "from_collapse_limit": "8", "join_collapse_limit": "8", "geqo": "on", "geqo_threshold": "12",
    "cursor_tuple_fraction": "0.1", "plan_cache_mode": "auto", "default_statistics_target": "100", "force_parallel_mode": "off",
    "debug_parallel_query": "off", "track_io_timing": "off", "vacuum_cost_delay": "0", "backslash_quote": "safe_encoding",
    "gin_fuzzy_search_limit": "0", "default_toast_compression": "pglz",
}  # fmt: skip

_PARAMETERS = {
    each.name.lower(): each
    for each in (
        _Parameter("server_version", SERVER_VERSION, "fixed"),
        _Parameter("server_version_num", "160004", "fixed"),
        _Parameter("server_encoding", "UTF8", "fixed"),
        _Parameter("client_encoding", "UTF8", "encoding"),
        _Parameter("DateStyle", "ISO, MDY", "dates"),
        _Parameter("IntervalStyle", "postgres", "text", ("postgres",)),
        _Parameter("TimeZone", "UTC", "zone"),
        _Parameter("integer_datetimes", "on", "fixed"),
        _Parameter("standard_conforming_strings", "on", "bool", ("on",)),
        _Parameter("escape_string_warning", "on", "bool"),
        _Parameter("bytea_output", "hex", "text", ("hex",)),
        _Parameter("search_path", '"$user", public'),
        _Parameter("application_name", ""),
        _Parameter("extra_float_digits", "1", "int"),
        _Parameter("client_min_messages", "notice"),
        _Parameter("statement_timeout", "0", "ms"),
        _Parameter("lock_timeout", "0", "ms"),
        _Parameter("idle_in_transaction_session_timeout", "0", "ms"),
        _Parameter("idle_session_timeout", "0", "ms"),
        _Parameter("transaction_isolation", "read committed", "text", ISOLATION),
        _Parameter("default_transaction_isolation", "read committed", "text", ISOLATION),
        _Parameter("transaction_read_only", "off", "bool"),
        _Parameter("default_transaction_read_only", "off", "bool"),
        _Parameter("default_transaction_deferrable", "off", "bool"),
        _Parameter("is_superuser", "off", "fixed"),
        _Parameter("session_authorization", "anonymous", "fixed"),
        _Parameter("in_hot_standby", "off", "fixed"),
        _Parameter("max_identifier_length", "63", "fixed"),
        _Parameter("max_index_keys", "32", "fixed"),
        _Parameter("block_size", "8192", "fixed"),
        _Parameter("lc_collate", "C.UTF-8", "fixed"),
        _Parameter("lc_ctype", "C.UTF-8", "fixed"),
        _Parameter("lc_messages", "C"),
        _Parameter("lc_monetary", "C"),
        _Parameter("lc_numeric", "C"),
        _Parameter("lc_time", "C"),
        _Parameter("xmloption", "content"),
        _Parameter("row_security", "on", "bool"),
        _Parameter("check_function_bodies", "on", "bool"),
        _Parameter("default_tablespace", ""),
        _Parameter("default_table_access_method", "heap"),
        _Parameter("jit", "off", "bool"),
        _Parameter("synchronous_commit", "on"),
        _Parameter("wal_level", "replica", "fixed"),
        _Parameter("quote_all_identifiers", "off", "bool"),
        _Parameter("constraint_exclusion", "partition"),
        _Parameter("array_nulls", "on", "bool", ("on",)),
        _Parameter("transform_null_equals", "off", "bool", ("off",)),
        *(_Parameter(f"enable_{name}", "on", "bool") for name in _PLANS),
        *(_Parameter(name, value) for name, value in _PLANNER.items()),
        _Parameter("datestyle_output", "ISO"),
        _Parameter("engine", "duckdb", "text", ("duckdb", "spark")),
        _Parameter("sql_dialect", "spark", "text", DIALECTS),
        _Parameter("max_rows", "0", "count"),
        _Parameter("create_view_waits", "on", "bool"),
        _Parameter("read_your_writes", "on", "bool"),
    )
}
# Of other streaming databases: scripts set them before their statements. They change nothing here, and a WARNING says so.
_OF_OTHERS = (
    "rw_", "streaming_", "batch_", "source_", "sink_", "iceberg_", "background_ddl", "create_compaction_group_for_mv", "query_mode",
    "query_epoch", "visibility_mode", "implicit_flush", "cluster", "database", "cross_join_", "recovery_", "enable_two_phase_",
    "enable_join_ordering", "enable_share_plan", "enable_index_selection", "unsafe_", "upsert_dml", "emit_", "max_query_result_size",
    "auto_route_", "real_time_recency",
)  # fmt: skip
_OF_TRANSACTIONS = ("transaction_isolation", "transaction_read_only")
_ISOLATIONS = ("transaction_isolation", "default_transaction_isolation")
NAMES = tuple(_PARAMETERS)  # in lower case
_OTHER_NAMES = {"time zone": "timezone", "transaction isolation level": "transaction_isolation", "names": "client_encoding"}


class Settings:
    """The parameters of one session.

    Args:
        values: that the client sent at the start; unknown names are ignored, as they may be for another server.
        dialect: of the engine.
        notify: told of a level of isolation that does not hold.
    """

    def __init__(
        self, values: Mapping[str, str], *, user: str, dialect: str, notify: Callable[[Notice], None] = lambda _: None
    ) -> None:
        self._notify = notify
        self._start = {"session_authorization": user, "sql_dialect": dialect}
        self._values: dict[str, str] = {}
        self._local: dict[str, str | None] = {}
        self._is_open = False
        self._before: dict[str, str] = {}  # the values at the begin of the transaction
        self._marks: list[tuple[str, dict[str, str], dict[str, str | None]]] = []  # savepoints
        self.generation = 0  # another one after every change
        for name, value in values.items():
            known = _PARAMETERS.get(name.lower())
            if known is not None and known.kind not in ("fixed",):
                self._start[name.lower()] = _checked(known, value)

    def get(self, name: str) -> str | None:
        """The value; None if there is no such parameter."""
        key = _key(name)
        if key in self._values:
            return self._values[key]
        if key in _OF_TRANSACTIONS:
            return self.get(f"default_{key}")
        if key in self._start:
            return self._start[key]
        known = _PARAMETERS.get(key)
        return known.default if known is not None else None

    def set(self, name: str, value: str | None, *, is_local: bool = False) -> None:
        """Change it; None for its default. Raises SqlError.

        Args:
            is_local: until the end of the transaction; without effect outside of one.
        """
        key = _key(name)
        known = _PARAMETERS.get(key)
        if known is None and key.startswith(_OF_OTHERS):
            self._notify(
                Notice(f'the parameter "{name}" has no effect here', "WARNING", "01000", "SHOW ALL lists those that have one")
            )
        elif known is None and "." not in key:
            raise SqlError(UNDEFINED_OBJECT, f'unrecognized configuration parameter "{name}"', hint="SHOW ALL lists them")
        if known is not None and known.kind == "fixed":
            raise SqlError("55P02", f'parameter "{known.name}" cannot be changed')
        checked = value if known is None or value is None else _checked(known, value)
        if is_local or key in _OF_TRANSACTIONS:
            if not self._is_open:
                return
            self._local.setdefault(key, self._values.get(key))
        else:
            self._local.pop(key, None)
        self.generation += 1
        if key in _ISOLATIONS and checked in STRONGER:
            self._notify(_weaker(checked))
        if checked is None:
            self._values.pop(key, None)
        else:
            self._values[key] = checked

    @property
    def are_changed(self) -> bool:
        """Whether one was set since the start, even to what it was."""
        return bool(self._values or self._local)

    def reset(self) -> None:
        """All defaults."""
        self.generation += 1
        self._values.clear()

    @property
    def is_read_only(self) -> bool:
        """Whether only temporary tables may be written."""
        return self.get("transaction_read_only") == "on"

    def begin_transaction(self) -> None:
        """From now on SET LOCAL has an effect, and SET can be undone."""
        self._is_open, self._before = True, dict(self._values)

    def end_transaction(self, *, is_committed: bool) -> None:
        """Undo SET LOCAL; and SET, too, if the transaction was rolled back."""
        if not self._is_open:
            return
        kept = dict(self._values) if is_committed else self._before
        for key, value in self._local.items() if is_committed else ():
            if value is None:
                kept.pop(key, None)
            else:
                kept[key] = value
        self.generation += kept != self._values
        self._values, self._is_open = kept, False
        self._local.clear()
        self._marks.clear()

    def save(self, name: str) -> None:
        """Set a savepoint."""
        self._marks.append((name, dict(self._values), dict(self._local)))

    def back_to(self, name: str) -> None:
        """Undo what came after a savepoint, which stays."""
        place = self._place(name)
        _, values, local = self._marks[place]
        del self._marks[place + 1 :]
        self.generation += values != self._values
        self._values, self._local = dict(values), dict(local)

    def release(self, name: str) -> None:
        """Forget a savepoint and those after it."""
        del self._marks[self._place(name) :]

    def _place(self, name: str) -> int:
        return max(place for place, mark in enumerate(self._marks) if mark[0] == name)

    def is_on(self, name: str) -> bool:
        """The value of a switch."""
        return self.get(name) == "on"

    @property
    def zone(self) -> Zone:
        """The time zone of the session."""
        name = self.get("TimeZone")
        return UTC_ZONE if name is None else zone_of(name)

    def milliseconds(self, name: str) -> float:
        """The value of a duration."""
        return _duration(self.get(name) or "0") or 0

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Names and values, by name."""
        for key in sorted(_PARAMETERS):
            yield _PARAMETERS[key].name, self.get(key) or ""


def _weaker(level: str) -> Notice:
    """A warning that says which isolation holds instead of a level."""
    text = f"{level.upper()} is not enforced: each statement sees what was committed when it began"
    return Notice(text, "WARNING", "01000", "the rows of the transaction are written at COMMIT, all of them or none")


def _key(name: str) -> str:
    key = " ".join(name.lower().split())
    return _OTHER_NAMES.get(key, key)


def _checked(known: _Parameter, value: str) -> str:
    match known.kind:
        case "bool":
            value = _bool(known, value)
        case "dates":
            if value.split(",")[0].strip().upper() != "ISO":
                raise SqlError("0A000", f"{known.name} is always ISO")
        case "ms":
            return _milliseconds(known, value)
        case "int" | "count":
            if not re.fullmatch(r"\s*-?\d{1,9}\s*" if known.kind == "int" else r"\s*\d{1,9}\s*", value):
                raise _invalid(known, value)
            return value.strip()
        case "encoding":
            if value.strip("'\"").upper().replace("-", "").replace("_", "") not in ("UTF8", "UNICODE"):
                raise SqlError("0A000", f'the encoding "{value}" is not supported', hint="use UTF8")
            return "UTF8"
        case "zone":
            return _zone(known, value)
    if len(known.choices) == 1 and value.lower() not in known.choices:
        raise SqlError("0A000", f"{known.name} is always {known.choices[0]}")
    if known.choices and value.lower() not in known.choices:
        raise _invalid(known, value, f"it can be {' or '.join(known.choices)}")
    return value.lower() if known.choices else value


def _zone(known: _Parameter, value: str) -> str:
    try:
        return zone_of(value).name
    except (ValueError, OSError, OverflowError):
        hint = "a zone is a name such as Europe/Zurich, or a number of hours east of UTC"
        raise _invalid(known, value, hint) from None


def _bool(known: _Parameter, value: str) -> str:
    word = value.strip().lower()
    if word in ("on", "true", "yes", "1", "t", "y"):
        return "on"
    if word in ("off", "false", "no", "0", "f", "n"):
        return "off"
    raise SqlError(INVALID_PARAMETER, f'parameter "{known.name}" requires a Boolean value')


def _milliseconds(known: _Parameter, value: str) -> str:
    """A duration as Postgres shows it: whole milliseconds, in the largest unit that has no fraction."""
    amount = _duration(value)
    if amount is None:
        raise _invalid(known, value, "a number of milliseconds, or one with a unit: ms, s, min, h, d")
    whole = round(amount)
    if not 0 <= amount < 2**31:
        raise _invalid(known, value)
    unit = next(unit for unit, size in reversed(_UNITS_MS.items()) if size <= 1 or whole % size == 0)
    return f"{whole // int(_UNITS_MS[unit])}{unit}" if whole else "0"


def _duration(text: str) -> float | None:
    """In milliseconds; None for another text."""
    found = _DURATION.match(text.lower())
    if not found or (found[2] and found[2] not in _UNITS_MS):
        return None
    return float(found[1]) * _UNITS_MS[found[2] or "ms"]


def _invalid(known: _Parameter, value: str, hint: str | None = None) -> SqlError:
    return SqlError(INVALID_PARAMETER, f'invalid value for parameter "{known.name}": "{value}"', hint=hint)
