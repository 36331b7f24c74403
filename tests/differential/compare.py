"""Two recordings of a scenario side by side, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tests.differential.normalise import identity

Recording = dict[str, Any]  # step -> normalised answer
ABSENT = "<absent>"
TEXT = "<text>"  # placeholder for any text: a message where Kafka has none is no difference


@dataclass(frozen=True)
class Difference:
    """One field that is not alike."""

    step: str
    path: str
    kafka: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.step}: {self.path or 'the answer'}: Kafka {self.kafka!r}, ours {self.ours!r}"


@dataclass(frozen=True)
class Known:
    """A difference that stands, and why. `steps` and `path` are shell patterns ([ is itself, * is anything)."""

    scenario: str
    steps: str
    path: str
    reason: str

    def covers(self, difference: Difference) -> bool:
        """Whether this is the entry for `difference`."""
        return _matches(difference.step, self.steps) and _matches(difference.path, self.path)


def _matches(text: str, pattern: str) -> bool:
    return fnmatchcase(text, pattern.replace("[", "[[]"))


def differences(kafka: Recording, ours: Recording) -> list[Difference]:
    """Every field of every step that differs."""
    found = []
    for step in [*kafka, *(step for step in ours if step not in kafka)]:
        for path, theirs, mine in _walk("", kafka.get(step, ABSENT), ours.get(step, ABSENT)):
            found.append(Difference(step, path, theirs, mine))
    return found


def _walk(path: str, kafka: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for name in [*kafka, *(name for name in ours if name not in kafka)]:
            yield from _walk(f"{path}.{name}".lstrip("."), kafka.get(name, ABSENT), ours.get(name, ABSENT))
    elif isinstance(kafka, list) and isinstance(ours, list):
        left, right = _by_identity(kafka), _by_identity(ours)
        for name in [*left, *(name for name in right if name not in left)]:
            yield from _walk(f"{path}[{name}]", left.get(name, ABSENT), right.get(name, ABSENT))
    elif (kafka != ours or type(kafka) is not type(ours)) and not (path.endswith("error_message") and ours == TEXT):
        yield path, kafka, ours


def _by_identity(elements: list[Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for index, element in enumerate(elements):
        name = identity(element) or str(index)
        result[name if name not in result else f"{name}#{index}"] = element
    return result
