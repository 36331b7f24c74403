"""A configuration key: its name, type, default, allowed values, and how its text is parsed and written.

Owns the parsing of one value. Every source (command line, properties file, protocol) gives text; the parsed value is kept.
`read` and `text_of` are inverse up to spelling (" 7 " reads as 7 and is written "7").

Rules
  1. If Kafka refuses a value, this module refuses it with Kafka's words, because admin tools show them.
  2. Every key has an `effect`: it marks keys that change nothing, and that are accepted only because existing files have them.

Source of names, types, defaults and ranges: the answers of Apache Kafka 4.3 to DescribeConfigs.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import NamedTuple, Protocol

from barnabas.digits import INT64, is_number
from barnabas.errors import ConfigError

Value = bool | int | float | str | tuple[str, ...] | None

INT_LIMITS = {"SHORT": 2**15, "INT": 2**31, "LONG": 2**63}


class ConfigType(IntEnum):
    """Numbers as in DescribeConfigs (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Scope(Enum):
    """Whether a running broker accepts a new value, and whether for one broker or for all."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Effect(Enum):
    HONOURED = "honoured"
    NONE = "none"  # accepted and shown, but without effect


class Check(Protocol):
    """A check of the values that a key allows; raises ConfigError, and `str` gives its text for a table cell."""

    def __call__(self, key: str, value: Value) -> None: ...


class InRange(NamedTuple):
    low: float | None = None
    high: float | None = None
    also: float | None = None  # one allowed value outside the range

    def __call__(self, key: str, value: Value) -> None:
        if value is None or value == self.also:
            return
        assert isinstance(value, int | float)
        if self.also is not None and not (self.low is not None and self.high is not None and self.low <= value <= self.high):
            raise ConfigError(key, text_of(value), f"Value must be between {self.low} and {self.high} or equal to {self.also}")
        if self.low is not None and value < self.low:
            raise ConfigError(key, text_of(value), f"Value must be at least {self.low}")
        if self.high is not None and value > self.high:
            raise ConfigError(key, text_of(value), f"Value must be no more than {self.high}")

    def __str__(self) -> str:
        text = f"{'…' if self.low is None else self.low} to {'…' if self.high is None else self.high}"
        return text if self.also is None else f"{text} or {self.also}"


class OneOf(NamedTuple):
    """A value from `words`; for a list, every word must be one of them."""

    words: tuple[str, ...]
    any_case: bool = False
    may_be_empty: bool = False

    def __call__(self, key: str, value: Value) -> None:
        if isinstance(value, tuple):
            self._check_list(key, value)
        elif isinstance(value, str):
            word = value.upper() if self.any_case else value
            if word not in ({w.upper() for w in self.words} if self.any_case else self.words):
                extra = " (case insensitive)" if self.any_case else ""
                raise ConfigError(key, value, f"String must be one of{extra}: {', '.join(self.words)}")

    def _check_list(self, key: str, value: tuple[str, ...]) -> None:
        if not value and not self.may_be_empty:
            raise ConfigError(key, "[]", "values must not be empty.")
        for word in value:
            if word not in self.words:
                raise ConfigError(key, word, f"String must be one of: {', '.join(self.words)}")

    def __str__(self) -> str:
        return ", ".join(self.words)


class NotEmpty:
    def __call__(self, key: str, value: Value) -> None:
        if value == "":
            raise ConfigError(key, "", "String must be non-empty")

    def __str__(self) -> str:
        return "not empty"


class ConfigKey(NamedTuple):
    """One key.

    Args:
        default: the parsed default; None means unset.
        hidden: a key that Kafka does not list; responses show it only if it is set.
    """

    name: str
    type: ConfigType
    default: Value
    check: Check | None
    importance: Importance
    scope: Scope
    effect: Effect
    doc: str
    hidden: bool = False

    @property
    def attribute(self) -> str:
        return self.name.replace(".", "_")

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def read(self, text: str) -> Value:
        """The parsed value of `text`; raises ConfigError with the allowed values."""
        value = _parse(self, text if self.type is ConfigType.PASSWORD else text.strip())
        if self.check is not None:
            self.check(self.name, value)
        return value

    def default_text(self) -> str | None:
        return None if self.default is None else text_of(self.default)


def at_least(low: float) -> InRange:
    return InRange(low=low)


def between(low: float, high: float) -> InRange:
    return InRange(low=low, high=high)


def one_of(*words: str) -> OneOf:
    return OneOf(words)


def text_of(value: Value) -> str:
    """The text of a parsed value, as Kafka writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return _java_double(value)
    return "" if value is None else str(value)


def _java_double(value: float) -> str:
    """Java writes doubles of 10^7 and more, or below 10^-3, with an exponent and at least one decimal."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value:.17e}".partition("e")
    shortest = repr(value)
    if "e" in shortest:
        mantissa, _, exponent = shortest.partition("e")
    else:
        digits = shortest.replace(".", "").replace("-", "").strip("0")
        mantissa = ("-" if value < 0 else "") + digits[0] + "." + digits[1:]
    if "." not in mantissa or mantissa.endswith("."):
        mantissa = mantissa.rstrip(".") + ".0"
    return f"{mantissa}E{int(exponent)}"


def _parse(key: ConfigKey, text: str) -> Value:
    match key.type:
        case ConfigType.BOOLEAN:
            return _parse_boolean(key.name, text)
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            return _parse_integer(key, text)
        case ConfigType.DOUBLE:
            try:
                return float(text)
            except ValueError:
                raise ConfigError(key.name, text, "Not a number of type DOUBLE") from None
        case ConfigType.LIST:
            return tuple(word.strip() for word in text.split(",")) if text else ()
        case _:
            return text


def _parse_boolean(name: str, text: str) -> bool:
    word = text.lower()
    if word not in {"true", "false"}:
        raise ConfigError(name, text, "Expected value to be either true or false")
    return word == "true"


def _parse_integer(key: ConfigKey, text: str) -> int:
    limit = INT_LIMITS[key.type.name]
    digits = text[1:] if text[:1] in {"-", "+"} else text
    if is_number(digits, INT64 + 1) and -limit <= int(text) < limit:
        return int(text)
    raise ConfigError(key.name, text, f"Not a number of type {key.type.name}")
