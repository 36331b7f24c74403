"""The known schema ids of one subject, and how long each answer holds.

A subject here is a name, or for strategies with the name of the record a rule that makes a name of each schema.

Rules
  1. A registered id holds for `limits.SCHEMA_ID_KEPT_S`. Its first use after that still passes, and asks the registry again in the
     background: while the registry is down, producers with known ids go on.
  2. An id that is not registered holds for `limits.UNKNOWN_SCHEMA_ID_KEPT_S` only: it may be registered at any time.
  3. Registered ids are bounded, and those that are not are bounded apart from them: garbage does not push out what is good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas import limits
from barnabas.config.definitions.schema_validation import RECORD_NAME, TOPIC_NAME
from barnabas.protocol.records.schema_ids import SchemaId


class SubjectRule(NamedTuple):
    """Which subjects an id must be registered under.

    Fields:
        prefix: the subject, or its part before the name of the record.
        by_record: the name of the record follows.
    """

    prefix: str
    by_record: bool

    def __str__(self) -> str:
        return f"{self.prefix}<name of the record>" if self.by_record else self.prefix


class Question(NamedTuple):
    """Whether an id is registered as a rule says."""

    schema_id: SchemaId
    rule: SubjectRule


class Verdict(NamedTuple):
    """The registry's word on a question.

    Fields:
        subject: the subject that was looked for; for a rule by record the names that the schema has.
    """

    is_registered: bool
    subject: str


def rule_of(topic: str, strategy: str, *, is_key: bool) -> SubjectRule:
    """The rule that a strategy makes for the keys or the values of a topic."""
    if strategy == TOPIC_NAME:
        return SubjectRule(f"{topic}-key" if is_key else f"{topic}-value", False)
    return SubjectRule("" if strategy == RECORD_NAME else f"{topic}-", True)


class Subject:
    """The ids of one rule.

    Args:
        ask_again: called with questions whose answers are old, and which nobody waits for.
    """

    def __init__(self, rule: SubjectRule, ask_again: Callable[[Iterable[Question]], None]) -> None:
        self.rule = rule
        self.registered: set[SchemaId] = set()
        self._ask_again = ask_again
        self._old: set[SchemaId] = set()  # ids that were registered when the registry was last asked
        self._turn_s = float("-inf")  # when `registered` becomes `_old`
        # schema id -> end of the refusal, and the subject that was looked for
        self._refused: dict[SchemaId, tuple[float, str]] = {}

    def known(self, now_s: float) -> set[SchemaId]:
        """The ids that need no question; of old ones only `missing` knows."""
        if now_s >= self._turn_s or len(self.registered) > limits.MAX_KNOWN_SCHEMA_IDS:
            self._old, self.registered = self.registered, set()
            self._turn_s = now_s + limits.SCHEMA_ID_KEPT_S
        return self.registered

    def missing(self, ids: Iterable[SchemaId | None], now_s: float) -> set[SchemaId]:
        """Those that are not known to be registered; null keys and values need none."""
        unknown = {each for each in ids if each is not None} - self.known(now_s)
        if still := unknown & self._old:
            self.registered |= still
            self._ask_again([Question(each, self.rule) for each in still])
            unknown -= still
        return unknown

    def refused(self, schema_id: SchemaId, now_s: float) -> str | None:
        """The subject that an id is not registered under; None if that is not known."""
        found = self._refused.get(schema_id)
        return found[1] if found is not None and now_s < found[0] else None

    def take(self, schema_id: SchemaId, verdict: Verdict, now_s: float) -> None:
        """Remember the registry's word."""
        if verdict.is_registered:
            self.registered.add(schema_id)
            self._refused.pop(schema_id, None)
            return
        self.registered.discard(schema_id)
        self._old.discard(schema_id)
        if len(self._refused) >= limits.MAX_UNKNOWN_SCHEMA_IDS:
            self._refused.clear()
        self._refused[schema_id] = now_s + limits.UNKNOWN_SCHEMA_ID_KEPT_S, verdict.subject
