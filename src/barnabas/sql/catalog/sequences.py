"""A sequence: its options, its owner, and the next number that no server has.

A server takes blocks of numbers, and gives them one by one. A block is void when the sequence was set, restarted or made again: then its
`id` or its `version` has changed.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

from barnabas.errors import BarnabasError
from barnabas.sql.interface import SqlError
from barnabas.sql.states import INVALID_PARAMETER, OUT_OF_RANGE, SEQUENCE_LIMIT

TOPIC = "_barnabas_sql_sequences"
BOUNDS = {"smallint": (1 << 15) - 1, "integer": (1 << 31) - 1, "bigint": (1 << 63) - 1}
_IDENTIFIER = re.compile(r'"((?:[^"]|"")+)"|([^\W\d][\w$]*)')


class BadSequence(BarnabasError):
    """A record of the topic of sequences that this version cannot read."""


class Sequence(Struct, frozen=True, omit_defaults=True):
    """A sequence.

    Args:
        id: of this making; a sequence of the same name that is made later has another.
        kind: `smallint`, `integer` or `bigint`.
        minimum, maximum: both are numbers of it.
        last: the last number that a server took; if `is_called` is false, the first that one will take.
        cache: how many numbers the first server takes at least.
        table, column: the owner; the sequence goes with it.
        identity: whether it numbers an identity column, so that it cannot be dropped by itself.
        version: changes when it is set or altered.
    """

    name: str
    id: str
    kind: str
    start: int
    increment: int
    minimum: int
    maximum: int
    last: int
    is_called: bool = False
    cache: int = 1
    cycle: bool = False
    table: str | None = None
    column: str | None = None
    identity: bool = False
    version: int = 0

    def taken(self, count: int) -> tuple[range, Sequence]:
        """Up to `count` numbers, at least one, and the sequence without them. Raises SqlError 2200H if there is none."""
        first = self.last + self.increment if self.is_called else self.last
        if not self.minimum <= first <= self.maximum:
            if not self.cycle:
                end, word = (self.maximum, "maximum") if self.increment > 0 else (self.minimum, "minimum")
                raise SqlError(SEQUENCE_LIMIT, f'nextval: reached {word} value of sequence "{self.name}" ({end})')
            first = self.minimum if self.increment > 0 else self.maximum
        span = self.maximum - first if self.increment > 0 else first - self.minimum
        count = min(count, span // abs(self.increment) + 1)
        numbers = range(first, first + count * self.increment, self.increment)
        return numbers, msgspec.structs.replace(self, last=numbers[-1], is_called=True)

    def set_to(self, value: int, *, is_called: bool) -> Sequence:
        """With this as the last number, or as the next one. Raises SqlError 22003."""
        if not self.minimum <= value <= self.maximum:
            raise SqlError(
                OUT_OF_RANGE,
                f'setval: value {value} is out of bounds for sequence "{self.name}" ({self.minimum}..{self.maximum})',
            )
        return msgspec.structs.replace(self, last=value, is_called=is_called, version=self.version + 1)

    def restarted(self, value: int | None = None) -> Sequence:
        """With its start, or this, as the next number. Raises SqlError 22023."""
        last = self.start if value is None else value
        made = msgspec.structs.replace(self, last=last, is_called=False, version=self.version + 1)
        check(made)
        return made


def check(sequence: Sequence) -> None:
    """Raises SqlError 22023 if the parts of a sequence do not fit together."""
    most = BOUNDS[sequence.kind]
    for word, value in (("MAXVALUE", sequence.maximum), ("MINVALUE", sequence.minimum)):
        if not -most - 1 <= value <= most:
            raise SqlError(INVALID_PARAMETER, f"{word} ({value}) is out of range for sequence data type {sequence.kind}")
    if sequence.increment == 0:
        raise SqlError(INVALID_PARAMETER, "INCREMENT must not be zero")
    if abs(sequence.increment) > BOUNDS["bigint"]:
        raise SqlError(INVALID_PARAMETER, f"INCREMENT ({sequence.increment}) is out of range for type bigint")
    if sequence.minimum >= sequence.maximum:
        raise SqlError(INVALID_PARAMETER, f"MINVALUE ({sequence.minimum}) must be less than MAXVALUE ({sequence.maximum})")
    if sequence.cache < 1:
        raise SqlError(INVALID_PARAMETER, f"CACHE ({sequence.cache}) must be greater than zero")
    for word, number in (("START", sequence.start), ("RESTART", sequence.last)):
        if number < sequence.minimum:
            raise SqlError(INVALID_PARAMETER, f"{word} value ({number}) cannot be less than MINVALUE ({sequence.minimum})")
        if number > sequence.maximum:
            raise SqlError(INVALID_PARAMETER, f"{word} value ({number}) cannot be greater than MAXVALUE ({sequence.maximum})")


def encode(sequence: Sequence) -> bytes:
    """The value of its record."""
    return msgspec.json.encode(sequence)


_DECODER = msgspec.json.Decoder(Sequence)  # made at import, because threads must not make it at once


def decode(payload: bytes) -> Sequence:
    """Raises BadSequence."""
    try:
        found = _DECODER.decode(payload)
        if found.kind not in BOUNDS:
            raise BadSequence(f"the sequence {found.name} has the unknown type {found.kind}")
        check(found)
    except (msgspec.MsgspecError, SqlError, UnicodeDecodeError) as error:
        raise BadSequence(str(error)) from None
    return found


def parts_of_text(text: str) -> list[str]:
    """The parts of a name as `nextval('…')` has it; those without quotes in lower case. Raises SqlError 42602."""
    found: list[str] = []
    at = 0
    while True:
        part = _IDENTIFIER.match(text, at)
        if part is None:
            raise SqlError("42602", f'invalid name syntax: "{text[:100]}"')
        found.append(part[1].replace('""', '"') if part[1] is not None else part[2].lower())
        at = part.end()
        if at == len(text):
            return found
        if text[at] != ".":
            raise SqlError("42602", f'invalid name syntax: "{text[:100]}"')
        at += 1


def in_quotes(name: str) -> str:
    """A name as a text has it: in double quotes if it would be read otherwise."""
    found = _IDENTIFIER.fullmatch(name)
    is_plain = found is not None and found[2] is not None and name == name.lower()
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def default_text(name: str) -> str:
    """The default of a column that the sequence numbers, as Postgres shows it."""
    literal = ".".join(map(in_quotes, name.split("."))).replace("'", "''")
    return f"nextval('{literal}'::regclass)"
