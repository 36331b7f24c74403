"""The types of options and arguments that all commands share.

click refuses a wrong value with the name of its option and exit code 2, before the command does anything. The bounds are those
of the protocol and of librdkafka, whose own errors are less clear or missing.

Rules
  1. By default, a text is UTF-8 and not only white space. `LazyGroup` gives TEXT to parameters that name no
     type.
  2. Numbers have both bounds.
  3. Paths are bytes, as in the file system: any byte except NUL.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.errors import BadInput
from barnabas.config.folders import why_not
from barnabas.digits import INT32, INT64

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # ParamType is not generic in older releases of click

MOST_STRING_BYTES = 2**15 - 1  # bytes of the longest string in the protocol
MOST_TEXT_BYTES = 2**31 - 1  # bytes of the longest text that the protocol does not send as a string
MOST_PARTITIONS, MOST_REPLICAS = 100_000, 10_000  # librdkafka's limits
MOST_SECONDS = 3_600.0  # librdkafka's limit for the wait for a response


class Text(ParamType):
    """A text, or the result of `parse` for it.

    Args:
        parse: raises BadInput; None keeps the text.
    """

    name = "text"

    def __init__(
        self, parse: Callable[[str], Any] | None = None, *, may_be_empty: bool = False, most_bytes: int = MOST_STRING_BYTES
    ) -> None:
        self.parse = parse
        self.may_be_empty = may_be_empty
        self.most_bytes = most_bytes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value  # the value is a default
        if not is_utf8(value):
            self.fail(f"{value!r} is not UTF-8.", param, ctx)
        data = value.encode()
        if b"\0" in data:
            self.fail("it has a zero byte.", param, ctx)
        if not (value.strip() or self.may_be_empty):
            self.fail("it is empty.", param, ctx)
        if len(data) > self.most_bytes:
            self.fail(f"it has {len(data)} bytes; allowed are {self.most_bytes}.", param, ctx)
        if self.parse is None:
            return value
        try:
            return self.parse(value)
        except BadInput as error:
            self.fail(error.message, param, ctx)


class Seconds(click.FloatRange):
    """A finite number of seconds."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a number of seconds.", param, ctx)
        return number


class FilePath(click.Path):
    """The name of a file or folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        name = os.fspath(value)
        if not name:
            self.fail("the name is empty.", param, ctx)
        if "\0" in name:
            self.fail("the name has a zero byte.", param, ctx)
        return super().convert(value, param, ctx)


class DataFolder(FilePath):
    """A broker's data folder; `log.dirs` must be able to name it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        reason = why_not(os.fspath(value))
        if reason is not None:
            self.fail(f"{reason}.", param, ctx)
        return super().convert(value, param, ctx)


def checked(parse: Callable[[str], Any]) -> Callable[[str], str]:
    """For `Text`: the text itself, after `parse` has accepted it."""

    def check(text: str) -> str:
        parse(text)
        return text

    return check


READABLE = FilePath(exists=True, dir_okay=False)


def _unpadded(text: str) -> str:
    if text != text.strip():
        raise BadInput(f"{text!r} has white space at an end, and clients cut that off")
    return text


TEXT = Text()
UNPADDED = Text(_unpadded)
ANY_TEXT = Text(may_be_empty=True, most_bytes=MOST_TEXT_BYTES)
PARTITION = click.IntRange(0, INT32)
PARTITIONS = click.IntRange(1, MOST_PARTITIONS)
REPLICAS = click.IntRange(1, MOST_REPLICAS)
BROKER_ID = click.IntRange(0, INT32)
OFFSET = click.IntRange(0, INT64)
SHIFT = click.IntRange(-INT64, INT64)
COUNT = click.IntRange(1, INT64)
PRODUCER_ID = click.IntRange(0, INT64)
TIMEOUT = Seconds(0.1, MOST_SECONDS)
WAIT = Seconds(0, INT32)
DURATION = Seconds(0, 1e12)
RATE = Seconds(0, 1e9, min_open=True)


def is_utf8(text: str) -> bool:
    """Whether the argument was UTF-8: Python represents other bytes as halves of surrogate pairs."""
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)


def strict(command: click.Command) -> click.Command:
    """The command with TEXT for every parameter that names no type; the same for its subcommands."""
    for parameter in command.params:
        if parameter.type is click.STRING:
            parameter.type = TEXT
    if isinstance(command, click.Group):
        for each in command.commands.values():
            strict(each)
    return command
