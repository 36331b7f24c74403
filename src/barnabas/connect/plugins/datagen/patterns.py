"""Texts that fit to a regular expression: literals, classes, groups, alternatives and counts."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from random import Random

Maker = Callable[[Random], str]
MOST_REPEATS = 8  # of * and +, which have no bound themselves
MOST = 1000  # of a count
CLASSES = {"d": string.digits, "w": string.ascii_letters + string.digits + "_", "s": " "}
ANY = string.ascii_letters + string.digits
_COUNT = re.compile(r"\{(\d+)(,(\d*))?\}")


def maker_of(pattern: str) -> Maker:
    """Makes texts. Raises ValueError for a pattern with something else in it."""
    parser = _Parser(pattern)
    made = parser.alternatives()
    if parser.rest:
        raise ValueError(f"{parser.rest[0]} at {parser.at} has no beginning")
    return made


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern, self.at = pattern, 0

    @property
    def rest(self) -> str:
        return self._pattern[self.at :]

    def _taken(self, some: str) -> bool:
        """Whether the next part is this one; it is passed then."""
        if not self.rest.startswith(some):
            return False
        self.at += len(some)
        return True

    def _next(self) -> str:
        if not self.rest:
            raise ValueError("the pattern ends too early")
        self.at += 1
        return self._pattern[self.at - 1]

    def alternatives(self) -> Maker:
        """What stands between bars."""
        ways = [self._sequence()]
        while self._taken("|"):
            ways.append(self._sequence())
        return lambda chance: chance.choice(ways)(chance)

    def _sequence(self) -> Maker:
        parts: list[Maker] = []
        while self.rest and self.rest[0] not in "|)":
            parts.append(self._counted(self._one()))
        return lambda chance: "".join(each(chance) for each in parts)

    def _counted(self, one: Maker) -> Maker:
        for letter, least, most in (("?", 0, 1), ("*", 0, MOST_REPEATS), ("+", 1, MOST_REPEATS)):
            if self._taken(letter):
                return _repeated(one, least, most)
        found = _COUNT.match(self.rest)
        if found is None:
            return one
        self.at += found.end()
        least = int(found[1])
        most = least if found[2] is None else int(found[3]) if found[3] else least + MOST_REPEATS
        if not least <= most <= MOST:
            raise ValueError(f"{found[0]} is no count up to {MOST}")
        return _repeated(one, least, most)

    def _one(self) -> Maker:
        letter = self._next()
        match letter:
            case "(":
                self._taken("?:")
                made = self.alternatives()
                if not self._taken(")"):
                    raise ValueError("a group has no end")
                return made
            case "[":
                return _any_of(self._class())
            case "\\":
                escaped = self._next()
                return _any_of(CLASSES.get(escaped, escaped))
            case ".":
                return _any_of(ANY)
            case "^" | "$":
                return lambda _chance: ""
            case "*" | "+" | "?" | "{":
                raise ValueError(f"nothing stands before {letter}")
        return lambda _chance: letter

    def _class(self) -> str:
        is_other, found = self._taken("^"), ""
        while not self._taken("]"):
            letter = self._next()
            if letter == "\\":
                letter = self._next()
                found += CLASSES.get(letter, letter)
            elif len(self.rest) > 1 and self.rest[0] == "-" and self.rest[1] != "]":
                self._taken("-")
                found += "".join(map(chr, range(ord(letter), ord(self._next()) + 1)))
            else:
                found += letter
        letters = "".join(each for each in ANY if each not in found) if is_other else found
        if not letters:
            raise ValueError("a class has no letters")
        return letters


def _any_of(letters: str) -> Maker:
    return lambda chance: chance.choice(letters)


def _repeated(one: Maker, least: int, most: int) -> Maker:
    return lambda chance: "".join(one(chance) for _ in range(chance.randint(least, most)))
