"""Checks of single config values, with the texts of Kafka's validators."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from barnabas.connect.config_types import ConfigError, invalid
from barnabas.connect.java_patterns import java_pattern


class Validator(Protocol):
    """Checks the value of a key; raises ConfigError. Its text says which values are valid."""

    def __call__(self, name: str, value: Any, /) -> None: ...


class Range(NamedTuple):
    """Numbers between two bounds; None is no bound."""

    least: float | None = None
    most: float | None = None

    def __call__(self, name: str, value: Any) -> None:
        if value is None:
            raise invalid(name, value, "Value must be non-null")
        if self.least is not None and value < self.least:
            raise invalid(name, value, f"Value must be at least {self.least}")
        if self.most is not None and value > self.most:
            raise invalid(name, value, f"Value must be no more than {self.most}")

    def __str__(self) -> str:
        if self.least is None:
            return f"[...,{self.most}]"
        return f"[{self.least},...]" if self.most is None else f"[{self.least},...,{self.most}]"


class ValidString(NamedTuple):
    """One of some texts."""

    valid: tuple[str, ...]
    is_case_sensitive: bool = True

    def __call__(self, name: str, value: Any) -> None:
        if self.is_case_sensitive:
            if value not in self.valid:
                raise invalid(name, value, f"String must be one of: {', '.join(self.valid)}")
        elif value is None or value.lower() not in {each.lower() for each in self.valid}:
            raise invalid(name, value, f"String must be one of (case insensitive): {', '.join(self.valid)}")

    def __str__(self) -> str:
        return f"{'' if self.is_case_sensitive else '(case insensitive) '}[{', '.join(self.valid)}]"


def one_of(*valid: str) -> ValidString:
    """One of these texts."""
    return ValidString(valid)


class ValidList(NamedTuple):
    """Lists of some texts."""

    valid: tuple[str, ...]

    def __call__(self, name: str, value: Any) -> None:
        for each in value or ():
            one_of(*self.valid)(name, each)

    def __str__(self) -> str:
        return str(ValidString(self.valid))


class Timezone(NamedTuple):
    """Names of time zones, such as UTC or Europe/Zurich."""

    def __call__(self, name: str, value: Any) -> None:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
            raise invalid(name, value, "Invalid time zone identifier") from None

    def __str__(self) -> str:
        return "valid time zone identifier"


class NonEmptyString(NamedTuple):
    """Texts that are not empty."""

    def __call__(self, name: str, value: Any) -> None:
        if value is not None and not value:
            raise invalid(name, value, "String must be non-empty")

    def __str__(self) -> str:
        return "non-empty string"


class NonEmptyStringWithoutControlChars(NamedTuple):
    """Texts that are not empty and have no control characters, such as names of connectors."""

    def __call__(self, name: str, value: Any) -> None:
        if value is None:
            return
        if not value:
            raise invalid(name, value, "String may not be empty")
        found = sorted({ord(each) for each in value if ord(each) < 32 or ord(each) == 127})
        if found:
            codes = ", ".join(map(str, found))
            raise invalid(name, value, f"String may not contain control sequences but had the following ASCII chars: {codes}")

    def __str__(self) -> str:
        return "non-empty string without ISO control characters"


class NonNull(NamedTuple):
    """Any value but none."""

    def __call__(self, name: str, value: Any) -> None:
        if value is None:
            raise invalid(name, value, "entry must be non null")

    def __str__(self) -> str:
        return "non-null string"


class ListSize(NamedTuple):
    """Lists with at most so many entries."""

    most: int

    def __call__(self, name: str, value: Any) -> None:
        if value is not None and len(value) > self.most:
            raise invalid(name, value, f"exceeds maximum list size of [{self.most}].")

    def __str__(self) -> str:
        return f"List containing maximum of {self.most} elements"


class UniqueList(NamedTuple):
    """Lists without an entry twice, as Kafka's `ValidList.anyNonDuplicateValues`."""

    may_be_empty: bool = True

    def __call__(self, name: str, value: Any) -> None:
        if value is None:
            raise ConfigError(f"Configuration '{name}' values must not be null.")
        if not value and not self.may_be_empty:
            raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: any non-empty value")
        if len(set(value)) < len(value):
            raise ConfigError(f"Configuration '{name}' values must not be duplicated.")
        if "" in value:
            raise ConfigError(f"Configuration '{name}' values must not be empty.")

    def __str__(self) -> str:
        return "any non-duplicate value"


class NonEmptyList(NamedTuple):
    """Lists with an entry at least."""

    def __call__(self, name: str, value: Any) -> None:
        if not value:
            raise invalid(name, value, "Empty list")

    def __str__(self) -> str:
        return "non-empty list"


class UniqueAliases(NamedTuple):
    """Lists of aliases, each of them once."""

    what: str

    def __call__(self, name: str, value: Any) -> None:
        NonNull()(name, value)
        if len(set(value)) < len(value):
            raise invalid(name, value, "Duplicate alias provided.")

    def __str__(self) -> str:
        return f"non-null string,unique {self.what} aliases"


class Regex(NamedTuple):
    """Regular expressions."""

    def __call__(self, name: str, value: Any) -> None:
        try:
            java_pattern(value)
        except (re.error, TypeError) as error:
            raise invalid(name, value, f"Invalid regex: {error}") from None

    def __str__(self) -> str:
        return "valid regex"


class Every(NamedTuple):
    """What several validators take."""

    validators: tuple[Validator, ...]

    def __call__(self, name: str, value: Any) -> None:
        for each in self.validators:
            each(name, value)

    def __str__(self) -> str:
        return ",".join(map(str, self.validators))


class Checked(NamedTuple):
    """What a function takes: it raises ConfigError for others."""

    check: Callable[[str, Any], None]
    says: str

    def __call__(self, name: str, value: Any) -> None:
        self.check(name, value)

    def __str__(self) -> str:
        return self.says


class Refused(NamedTuple):
    """No value at all, for a reason."""

    reason: str

    def __call__(self, name: str, value: Any) -> None:
        raise invalid(name, value, self.reason)

    def __str__(self) -> str:
        return "none"
