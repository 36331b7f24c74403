"""The known schema ids of one subject, and how long each answer is valid.

A subject here is a name. For strategies with the name of the record it is a rule that makes a name from each schema.

Rules
  1. A registered id is valid for `limits.SCHEMA_ID_KEPT_S` seconds. Its first use after that still passes, and asks the registry again in
     the background. So while the registry is down, producers with known ids continue.
  2. The answer "not registered" is valid only for `limits.UNKNOWN_SCHEMA_ID_KEPT_S` seconds, because the id may be registered at any time.
  3. Registered and unregistered ids have separate limits, so that invalid ids do not push out valid ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas import limits
from barnabas.config.definitions.schema_validation import RECORD_NAME, TOPIC_NAME
from barnabas.protocol.records.schema_ids import SchemaId


class SubjectRule(NamedTuple):
    """The subjects under which an id must be registered.

    Fields:
        prefix: the subject, or its part before the name of the record.
        by_record: whether the name of the record follows.
    """

    prefix: str
    by_record: bool

    def __str__(self) -> str:
        return f"{self.prefix}<name of the record>" if self.by_record else self.prefix


class Question(NamedTuple):
    """The question whether an id is registered as a rule demands."""

    schema_id: SchemaId
    rule: SubjectRule


class Verdict(NamedTuple):
    """The registry's answer to a question.

    Fields:
        subject: the subject in the question; for a rule by record, the subjects of the schema's records.
    """

    is_registered: bool
    subject: str


def rule_of(topic: str, strategy: str, *, is_key: bool) -> SubjectRule:
    """The rule of a strategy for the keys or the values of a topic."""
    if strategy == TOPIC_NAME:
        return SubjectRule(f"{topic}-key" if is_key else f"{topic}-value", False)
    return SubjectRule("" if strategy == RECORD_NAME else f"{topic}-", True)


class Subject:
    """The ids of one rule.

    Args:
        ask_again: called with questions whose answers are old; no request waits for them.
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
        """The ids that need no question. For old ids, call `missing`."""
        if now_s >= self._turn_s or len(self.registered) > limits.MAX_KNOWN_SCHEMA_IDS:
            self._old, self.registered = self.registered, set()
            self._turn_s = now_s + limits.SCHEMA_ID_KEPT_S
        return self.registered

    def missing(self, ids: Iterable[SchemaId | None], now_s: float) -> set[SchemaId]:
        """The ids that are not known as registered. Null keys and values need no id."""
        unknown = {each for each in ids if each is not None} - self.known(now_s)
        if still := unknown & self._old:
            self.registered |= still
            self._ask_again([Question(each, self.rule) for each in still])
            unknown -= still
        return unknown

    def refused(self, schema_id: SchemaId, now_s: float) -> str | None:
        """The subject under which an id is not registered; None if the broker has no such answer."""
        found = self._refused.get(schema_id)
        return found[1] if found is not None and now_s < found[0] else None

    def take(self, schema_id: SchemaId, verdict: Verdict, now_s: float) -> None:
        """Remember the registry's answer."""
        if verdict.is_registered:
            self.registered.add(schema_id)
            self._refused.pop(schema_id, None)
            return
        self.registered.discard(schema_id)
        self._old.discard(schema_id)
        if len(self._refused) >= limits.MAX_UNKNOWN_SCHEMA_IDS:
            self._refused.clear()
        self._refused[schema_id] = now_s + limits.UNKNOWN_SCHEMA_ID_KEPT_S, verdict.subject
