"""From the name in a client's certificate to a principal: `ssl.principal.mapping.rules`.

Owns the language of rules, with Kafka's semantics. Rules stand side by side, separated by commas; the first that fits gives the name.

    DEFAULT                             the name as it is
    RULE:pattern/replacement/[LU]       if the pattern matches all of the name, every match of it in the name is replaced; L and U make the
                                        result small or large letters

A slash in pattern or replacement is written `\\/`. In a replacement `$1` is a group of the pattern, with as many digits as there is a group
for, and a number that there is no group for stands for itself; a backslash takes the meaning from what follows.

Ugly: patterns are Java's in Kafka and Python's here. What ACLs need (groups, classes, quantifiers) is the same in both; `\\p{..}` is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from barnabas.errors import BarnabasError, ConfigError

KEY = "ssl.principal.mapping.rules"
ALLOWED = "DEFAULT and RULE:pattern/replacement/[LU], several separated by commas"
PART = r"(?:\\.|[^\\/])*"
RULE = re.compile(
    rf"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>{PART})/(?P<replacement>{PART})/(?P<case>[LU]?))\s*(?:,|$)", re.DOTALL
)
DEFAULT = "DEFAULT"


class NoMatchingRule(BarnabasError):
    """A name that no rule is for."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"no rule of {KEY} is for {self.name}"


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str] | None  # None: the name as it is
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        result = self.pattern.sub(lambda match: _expand(self.replacement, match), name)
        return {"L": result.lower, "U": result.upper}.get(self.case, lambda: result)()


class PrincipalRules:
    """Parsed rules; raises ConfigError."""

    def __init__(self, text: str) -> None:
        self._rules = _parse(text.strip() or DEFAULT)

    def name_of(self, distinguished_name: str) -> str:
        """Raises NoMatchingRule."""
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
        rules.append(_rule(text, match))
        position = match.end()
    return tuple(rules)


def _rule(text: str, match: re.Match[str]) -> _Rule:
    if match["default"]:
        return _Rule(None)
    try:
        pattern = re.compile(match["pattern"])
    except re.error as error:
        raise ConfigError(KEY, text, f"a pattern that is one: {match['pattern']!r}: {error}") from None
    return _Rule(pattern, match["replacement"], match["case"])


def _expand(replacement: str, match: re.Match[str]) -> str:
    out, position = [], 0
    groups = match.re.groups
    while position < len(replacement):
        character = replacement[position]
        position += 1
        if character == "\\" and position < len(replacement):
            out.append(replacement[position])
            position += 1
        elif character == "$" and replacement[position : position + 1].isdecimal():
            number, end = int(replacement[position]), position + 1
            while end < len(replacement) and replacement[end].isdecimal() and int(replacement[position : end + 1]) <= groups:
                end += 1
                number = int(replacement[position:end])
            if number <= groups:
                out.append(match[number] or "")
                position = end
            else:
                out.append(character)
        else:
            out.append(character)
    return "".join(out)
