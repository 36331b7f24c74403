"""The levels of the process's loggers as settings of the resource BROKER_LOGGER (KIP-412).

Kafka's levels are Log4j's; TRACE is Python's 5, WARN its WARNING, FATAL its CRITICAL. The levels belong to the process: a restart resets
them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from barnabas.cluster.planning.configs import AlterOperation, Change
from barnabas.config.describe import ConfigEntry, Source
from barnabas.digits import is_number
from barnabas.errors import ErrorCode, KafkaError

TRACE = 5
LEVELS = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": TRACE,
    "WARN": logging.WARNING,
}
ROOT = "root"
UNKNOWN_TYPE = 0


def check_logger_resource(name: str, node_id: int) -> None:
    """Raises KafkaError unless `name` is this broker's id."""
    digits = name.removeprefix("-")
    if not is_number(digits):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {node_id}, but received {name}")


def logger_entries(keys: Sequence[str] | None) -> list[ConfigEntry]:
    """Each logger with its effective level."""
    return [
        ConfigEntry(name, _level_name(name), Source.BROKER_LOGGER, False, False, UNKNOWN_TYPE, (), "")
        for name in _names()
        if not keys or name in keys
    ]


def alter_loggers(changes: Sequence[Change], *, validate_only: bool) -> None:
    """Set or reset levels: all of them, or none if one is refused (KafkaError)."""
    known = set(_names())
    for name, operation, value in changes:
        _check(name, operation, value, known)
    if not validate_only:
        for name, operation, value in changes:
            _logger(name).setLevel(LEVELS[value or ""] if operation == AlterOperation.SET else logging.NOTSET)


def _check(name: str, operation: int, value: str | None, known: Iterable[str]) -> None:
    if operation == AlterOperation.DELETE:
        if name == ROOT:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
    elif operation != AlterOperation.SET:
        names = {member.value: member.name for member in AlterOperation}
        reason = f"{names.get(operation, operation)} operation is not allowed for the BROKER_LOGGER resource"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    elif value is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
    if name not in known:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == AlterOperation.SET and value not in LEVELS:
        reason = f"Cannot set the log level of {name} to {value} as it is not a supported log level."
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{reason} Valid log levels are {', '.join(LEVELS)}")


def _names() -> list[str]:
    loggers = logging.root.manager.loggerDict
    return [ROOT, *sorted(name for name, found in loggers.items() if isinstance(found, logging.Logger))]


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _level_name(name: str) -> str:
    level = _logger(name).getEffectiveLevel()
    return max(LEVELS.items(), key=lambda item: item[1] if item[1] <= max(level, TRACE) else 0)[0]
