"""Maps the name in a client's certificate to a principal: `ssl.principal.mapping.rules`.

Owns the syntax of rules, with Kafka's semantics. Rules are separated by commas; the first matching rule gives the name.

    DEFAULT                             the name stays unchanged
    RULE:pattern/replacement/[LU]       if the pattern matches the whole name, every match of it in the name is replaced; L and U
                                        convert the result to lower or upper case

A slash in a pattern or replacement is written `\\/`. In a replacement, `$1` is a group of the pattern: the number has as many
digits as give an existing group. `${name}` is a group with a name. A number without a group stays as text. A backslash makes the
next character literal.

A text without rules maps no name.

Ugly: Kafka has Java's patterns, this module has Python's. The features that names need (groups, classes, quantifiers) are the
same in both. Java's syntax of named groups is accepted, but `\\p{..}` is not.
"""

from __future__ import annotations

import re

from msgspec import Struct

from barnabas.errors import BarnabasError, ConfigError

KEY = "ssl.principal.mapping.rules"
ALLOWED = "DEFAULT and RULE:pattern/replacement/[LU], several separated by commas"
PART = r"(?:\\.|[^\\/])*"
RULE = re.compile(
    rf"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>{PART})/(?P<replacement>{PART})/(?P<case>[LU]?)|)\s*(?:,|$)", re.DOTALL
)
NAMED_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")  # Java's syntax of a named group
GROUP_NAME = re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}")


class NoMatchingRule(BarnabasError):
    """No rule matches the name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"no rule of {KEY} matches {self.name}"


class _Rule(Struct, frozen=True):
    pattern: re.Pattern[str] | None  # None leaves the name unchanged
    replacement: tuple[str | int, ...] = ()  # literal text, and numbers of groups
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        result = self.pattern.sub(self._expand, name)
        return result.lower() if self.case == "L" else result.upper() if self.case == "U" else result

    def _expand(self, match: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else match[part] or "" for part in self.replacement)


class PrincipalRules:
    """Parsed rules; the constructor raises ConfigError."""

    def __init__(self, text: str) -> None:
        self._rules = _parse(text.strip())

    def name_of(self, distinguished_name: str) -> str:
        """The principal's name for a distinguished name; raises NoMatchingRule."""
        for rule in self._rules:
            name = rule.apply(distinguished_name)
            if name is not None:
                return name
        raise NoMatchingRule(distinguished_name)


def _parse(text: str) -> tuple[_Rule, ...]:
    rules, position = [], 0
    while position < len(text):
        match = RULE.match(text, position)
        if match is None:
            raise ConfigError(KEY, text, ALLOWED)
        if match["default"]:
            rules.append(_Rule(None))
        elif match["pattern"] is not None:
            rules.append(_rule(text, match["pattern"], match["replacement"], match["case"]))
        position = match.end()
    return tuple(rules)


def _rule(text: str, pattern: str, replacement: str, case: str) -> _Rule:
    try:
        compiled = re.compile(NAMED_GROUP.sub("(?P<", pattern))
    except re.error as error:
        raise ConfigError(KEY, text, f"patterns that are some; {pattern!r} is none: {error}") from None
    parts = _parts_of(replacement, compiled)
    if parts is None:
        raise ConfigError(KEY, text, f"replacements that name groups of their patterns; {replacement!r} does not")
    return _Rule(compiled, parts, case)


def _parts_of(replacement: str, pattern: re.Pattern[str]) -> tuple[str | int, ...] | None:
    """The texts and the numbers of groups in a replacement; None if it names a group that the pattern does not have."""
    parts: list[str | int] = []
    position = 0
    while position < len(replacement):
        character = replacement[position]
        position += 1
        if character == "\\" and position < len(replacement):
            parts.append(replacement[position])
            position += 1
        elif character != "$":
            parts.append(character)
        elif replacement[position : position + 1].isdecimal():
            number, end = _group_at(replacement, position, pattern.groups)
            parts += [number] if number <= pattern.groups else ["$", str(number)]
            position = end
        else:
            named = GROUP_NAME.match(replacement, position)
            if named is None or named[1] not in pattern.groupindex:
                return None
            parts.append(pattern.groupindex[named[1]])
            position = named.end()
    return tuple(parts)


def _group_at(text: str, start: int, groups: int) -> tuple[int, int]:
    """The group number at `start`, with as many digits as give an existing group, and the position of its end."""
    end = start + 1
    while end < len(text) and text[end].isdecimal() and int(text[start : end + 1]) <= groups:
        end += 1
    return int(text[start:end]), end
