"""What is known of the ids of a subject, and the check of a batch against it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from barnabas import limits
from barnabas.config.definitions.schema_validation import RECORD_NAME, TOPIC_NAME, TOPIC_RECORD_NAME
from barnabas.errors import ErrorCode, InvalidRecordError
from barnabas.protocol.records.schema_ids import NO_SCHEMA_ID, SchemaIds
from barnabas.server.schema_validation.subject import Question, Subject, SubjectRule, Verdict, rule_of
from barnabas.server.schema_validation.topic_check import SchemaIdsUnknown, TopicCheck, shown

RULE = SubjectRule("t-value", False)
GOOD, BAD, OTHER = (bytes([0, 0, 0, 0, number]) for number in (1, 2, 3))
YES, NO = Verdict(True, "t-value"), Verdict(False, "t-value")


class Asked:
    def __init__(self) -> None:
        self.questions: list[Question] = []

    def __call__(self, questions: Iterable[Question]) -> None:
        self.questions += questions


@pytest.mark.parametrize(
    ("strategy", "of_key", "of_value"),
    [
        (TOPIC_NAME, "t-key", "t-value"),
        (RECORD_NAME, "<name of the record>", "<name of the record>"),
        (TOPIC_RECORD_NAME, "t-<name of the record>", "t-<name of the record>"),
    ],
)
def test_rules_of_strategies(strategy: str, of_key: str, of_value: str) -> None:
    assert str(rule_of("t", strategy, is_key=True)) == of_key
    assert str(rule_of("t", strategy, is_key=False)) == of_value


def test_a_registered_id_is_asked_about_again_after_its_time_and_passes_meanwhile() -> None:
    asked = Asked()
    subject = Subject(RULE, asked)
    subject.missing([], 0)
    subject.take(GOOD, YES, 0)
    subject.take(OTHER, YES, 0)
    assert subject.missing([GOOD, None, GOOD], limits.SCHEMA_ID_KEPT_S - 1) == set()
    assert asked.questions == []
    assert subject.missing([GOOD], limits.SCHEMA_ID_KEPT_S) == set()
    assert asked.questions == [Question(GOOD, RULE)]
    assert subject.missing([GOOD], limits.SCHEMA_ID_KEPT_S + 1) == set()
    assert len(asked.questions) == 1
    subject.take(GOOD, NO, limits.SCHEMA_ID_KEPT_S + 1)
    assert subject.missing([GOOD], limits.SCHEMA_ID_KEPT_S + 1) == {GOOD}
    assert subject.missing([OTHER], 2 * limits.SCHEMA_ID_KEPT_S) == {OTHER}, "nobody used it for so long"


def test_an_id_that_is_not_registered_is_forgotten_soon() -> None:
    subject = Subject(RULE, Asked())
    subject.take(BAD, NO, 10)
    assert subject.refused(BAD, 10) == "t-value"
    assert subject.refused(BAD, 10 + limits.UNKNOWN_SCHEMA_ID_KEPT_S) is None
    subject.take(BAD, YES, 10)
    assert subject.refused(BAD, 10) is None
    assert subject.missing([BAD], 10) == set()


def test_garbage_is_bounded_and_does_not_push_out_what_is_registered() -> None:
    subject = Subject(RULE, Asked())
    subject.missing([], 0)
    subject.take(GOOD, YES, 0)
    for number in range(2 * limits.MAX_UNKNOWN_SCHEMA_IDS):
        subject.take(b"\0\1" + number.to_bytes(3), NO, 0)
    assert len(subject._refused) <= limits.MAX_UNKNOWN_SCHEMA_IDS
    assert subject.missing([GOOD], 0) == set()


def test_registered_ids_are_bounded() -> None:
    subject = Subject(RULE, Asked())
    for number in range(3 * limits.MAX_KNOWN_SCHEMA_IDS):
        subject.take(b"\0" + number.to_bytes(4), YES, 0)
        subject.missing([], 0)
    assert len(subject.registered) + len(subject._old) <= 2 * limits.MAX_KNOWN_SCHEMA_IDS + 1


@pytest.fixture
def values() -> Subject:
    made = Subject(RULE, Asked())
    made.missing([], 0)
    made.take(GOOD, YES, 0)
    made.take(BAD, NO, 0)
    return made


def check_of(keys: Subject | None, values: Subject | None) -> Callable[[SchemaIds], None]:
    check = TopicCheck(keys, values, lambda: 0.0, lambda: "it sleeps")

    return check.refuse


def test_refusals_say_which_record_id_and_subject(values: Subject) -> None:
    keys = Subject(SubjectRule("t-key", False), Asked())
    keys.missing([], 0)
    keys.take(GOOD, YES, 0)
    check = check_of(keys, values)
    check(SchemaIds([GOOD, None], [None, GOOD]))
    with pytest.raises(InvalidRecordError) as refused:
        check(SchemaIds([GOOD, GOOD, NO_SCHEMA_ID, None], [GOOD, BAD, BAD, NO_SCHEMA_ID]))
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert refused.value.record_errors == (
        (1, "Record 1 has schema id 2 in its value, which is not registered under subject t-value."),
        (2, "Record 2 has no schema id in its key, which subject t-key requires."),
        (3, "Record 3 has no schema id in its value, which subject t-value requires."),
    )
    assert (refused.value.message or "").startswith("One or more records have been rejected due to 3 record errors in total")


def test_unknown_ids_are_questions_and_retriable(values: Subject) -> None:
    with pytest.raises(SchemaIdsUnknown) as unknown:
        check_of(None, values)(SchemaIds([], [GOOD, OTHER, OTHER]))
    assert unknown.value.questions == [Question(OTHER, RULE)]
    assert unknown.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    told = "The schema registry was not asked whether schema id 3 is registered under t-value: it sleeps"
    assert unknown.value.message == told


def test_questions_of_a_batch_are_bounded(values: Subject) -> None:
    ids: list[bytes | None] = [b"\0\1" + number.to_bytes(3) for number in range(5 * limits.MAX_SCHEMA_IDS_OF_A_BATCH)]
    with pytest.raises(SchemaIdsUnknown) as unknown:
        check_of(None, values)(SchemaIds([], ids))
    assert len(unknown.value.questions) == limits.MAX_SCHEMA_IDS_OF_A_BATCH


def test_ids_for_people() -> None:
    assert shown(b"\0\0\0\1\0") == "schema id 256"
    assert shown(b"\1" + bytes(range(16))) == "schema GUID 00010203-0405-0607-0809-0a0b0c0d0e0f"
