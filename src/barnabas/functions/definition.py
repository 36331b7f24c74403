"""The definition of a function, as its record has it, and as the plan of a view carries it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import msgspec
from msgspec import Struct

from barnabas.errors import BarnabasError

PYTHON, SQL = "python", "sql"
ROW, ARROW, PANDAS = "row", "arrow", "pandas"  # what the Python code gets: values, pyarrow's arrays, or an iterator over series
CALL = "__f_"  # DuckDB's name of a function begins so


class FunctionError(BarnabasError):
    """A function that cannot be made, or that failed.

    Args:
        message: one line.
        detail: where in the function's text it was; several lines.
    """

    def __init__(self, message: str, detail: str | None = None) -> None:
        super().__init__(message, detail)
        self.message, self.detail = message, detail

    def __str__(self) -> str:
        return self.message


class CallFailed(FunctionError):
    """The code of a function raised an error, or gave a value of another type."""


class BadFunction(FunctionError):
    """A record or a text that is no function."""


class Argument(Struct, frozen=True, omit_defaults=True):
    """An argument, or a column of the rows that a function gives.

    Args:
        name: empty for one that only has a number.
        kind: in DuckDB's words.
        shown: the type in Postgres' words.
        default: the text of an expression.
    """

    name: str
    kind: str
    shown: str
    default: str | None = None


class Function(Struct, frozen=True, omit_defaults=True, dict=True):
    """A function.

    Args:
        returns: the type of its result; of a function that gives rows, None.
        body: its text.
        handler: the function of the body that is called; empty if the body is that of the function.
        style: ROW, ARROW or PANDAS.
        is_strict: whether the result is null, without a call, where an argument is null.
        volatility: immutable, stable or volatile; empty if the statement did not say it.
        columns: of the rows that it gives.
    """

    name: str
    arguments: tuple[Argument, ...]
    returns: Argument | None
    language: str
    body: str
    handler: str = ""
    style: str = ROW
    is_strict: bool = False
    volatility: str = ""
    columns: tuple[Argument, ...] = ()

    @property
    def signature(self) -> str:
        """The name with the types of the arguments."""
        return f"{self.name}({', '.join(each.shown for each in self.arguments)})"

    @property
    def shown_arguments(self) -> str:
        """The arguments as a statement declares them."""
        return listed(self.arguments)

    @property
    def shown_result(self) -> str:
        """The result as a statement declares it."""
        return self.returns.shown if self.returns is not None else f"TABLE({listed(self.columns)})"

    @property
    def statement(self) -> str:
        """The statement that makes it."""
        words = [
            f"CREATE FUNCTION {quoted(self.name)}({self.shown_arguments}) RETURNS {self.shown_result} LANGUAGE {self.language.upper()}"
        ]
        words += [self.volatility.upper()] if self.volatility else []
        words += ["STRICT"] if self.is_strict else []
        words += [f"PARAMETER STYLE {self.style.upper()}"] if self.style != ROW else []
        words += [f"HANDLER '{self.handler}'"] if self.handler not in ("", self.name) else []
        mark = "$$" if "$$" not in self.body else "$function$"
        return " ".join(words) + f" AS {mark}{self.body}{mark}"

    @cached_property
    def digest(self) -> str:
        """Tells apart all functions that behave in different ways."""
        return hashlib.sha256(encode(self)).hexdigest()[:20]

    @property
    def call(self) -> str:
        """DuckDB's name of it."""
        return CALL + self.digest

    @property
    def kind(self) -> str:
        """DuckDB's type of a call's result: rows are a list of structs."""
        if self.returns is not None:
            return "VARCHAR" if self.returns.kind == "JSON" else self.returns.kind
        parts = (f'"{each.name}" {each.kind}'.replace(" JSON", " VARCHAR") for each in self.columns)
        return f"STRUCT({', '.join(parts)})[]"

    @property
    def least(self) -> int:
        """How many arguments a call must have."""
        return sum(each.default is None for each in self.arguments)

    def takes(self, count: int) -> bool:
        """Whether a call may have so many arguments."""
        return self.least <= count <= len(self.arguments)


class Stored(Struct, frozen=True, omit_defaults=True):
    """The value of a function's record.

    Args:
        kept: earlier definitions that views use.
    """

    function: Function
    kept: tuple[Function, ...] = ()


_STORED = msgspec.json.Decoder(Stored)  # made at import, because threads must not make it at once


def quoted(name: str) -> str:
    """A name in a statement; none stays none."""
    if not name or (name.isidentifier() and name == name.lower()):
        return name
    return '"' + name.replace('"', '""') + '"'


def listed(arguments: Sequence[Argument]) -> str:
    """Arguments in a statement."""
    parts = []
    for each in arguments:
        default = f" DEFAULT {each.default}" if each.default is not None else ""
        parts.append(f"{quoted(each.name)} {each.shown}{default}".strip())
    return ", ".join(parts)


def encode(value: Function | Stored) -> bytes:
    """As JSON."""
    return msgspec.json.encode(value)


def decode(payload: bytes) -> Stored:
    """Raises BadFunction."""
    try:
        return _STORED.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadFunction(f"the record is no function: {error}") from None
