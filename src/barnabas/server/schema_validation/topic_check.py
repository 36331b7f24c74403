"""The check of the batches of one topic, with the known ids of its subjects.

The check has three results: every id is known, some records are refused, or the registry must be asked first (`SchemaIdsUnknown`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas import limits
from barnabas.errors import ErrorCode, InvalidRecordError, KafkaError
from barnabas.protocol.records.batch_header import Buffer
from barnabas.protocol.records.schema_ids import (
    ID_BYTES,
    NO_SCHEMA_ID,
    SchemaId,
    SchemaIds,
    name_known_schemas,
    schema_ids,
)
from barnabas.server.schema_validation.subject import Question, Subject

SHOWN_ERRORS = 3  # record errors named in the text; all are in the response's list


class SchemaIdsUnknown(KafkaError):
    """The registry must be asked before the append of a batch; in an answer: the registry could not be asked.

    A producer may retry. Among Kafka's errors for a retry, only NOT_ENOUGH_REPLICAS also says that nothing was appended, and has no other
    effect on clients. Kafka gives the same error if a transaction coordinator cannot be asked.

    Args:
        questions: the questions for the registry.
    """

    def __init__(self, questions: Sequence[Question], reason: str) -> None:
        first = questions[0]
        told = f"The schema registry was not asked whether {shown(first.schema_id)} is registered under {first.rule}: {reason}"
        super().__init__(ErrorCode.NOT_ENOUGH_REPLICAS, told)
        self.questions = questions


class TopicCheck:
    """The check of the keys, the values, or both.

    Args:
        keys, values: the subject of each; None for no check.
        now_s: a monotonic clock.
        why_unknown: returns the last reason why the registry could not be asked.
    """

    __slots__ = ("_now_s", "_why_unknown", "keys", "values")

    def __init__(
        self, keys: Subject | None, values: Subject | None, now_s: Callable[[], float], why_unknown: Callable[[], str]
    ) -> None:
        self.keys = keys
        self.values = values
        self._now_s = now_s
        self._why_unknown = why_unknown

    def passes(self, data: Buffer, count: int) -> bool:
        """Whether `count` records fill `data` and all their ids are known to be registered."""
        now_s, keys, values = self._now_s(), self.keys, self.values
        return name_known_schemas(
            data, count, None if keys is None else keys.known(now_s), None if values is None else values.known(now_s)
        )

    def ids_in(self, data: Buffer, count: int) -> SchemaIds | None:
        """The ids to check; None if the records are not well-formed."""
        return schema_ids(bytes(data), count, keys=self.keys is not None, values=self.values is not None)

    def refuse(self, ids: SchemaIds) -> None:
        """Raise InvalidRecordError for ids that are not registered, and SchemaIdsUnknown if only the registry has the answer."""
        now_s = self._now_s()
        errors: dict[int, str] = {}
        questions: list[Question] = []
        for part, subject, found in (("key", self.keys, ids.of_keys), ("value", self.values, ids.of_values)):
            if subject is None:
                continue
            missing = subject.missing(found, now_s)
            looked_for = {each: subject.refused(each, now_s) for each in missing if each}
            questions += [Question(each, subject.rule) for each, name in looked_for.items() if name is None]
            for index, each in enumerate(found):
                if each == NO_SCHEMA_ID and each is not None:
                    errors.setdefault(index, _without_id(index, part, subject))
                elif each in looked_for and (name := looked_for[each]) is not None:
                    errors.setdefault(index, _not_registered(index, part, each, name))
        if errors:
            told = sorted(errors.items())
            raise InvalidRecordError(ErrorCode.INVALID_RECORD, _summary(told), told)
        if questions:
            raise SchemaIdsUnknown(questions[: limits.MAX_SCHEMA_IDS_OF_A_BATCH], self._why_unknown())


def shown(schema_id: SchemaId) -> str:
    """A schema id as text for messages."""
    if len(schema_id) == ID_BYTES:
        return f"schema id {int.from_bytes(schema_id[1:], signed=True)}"
    text = schema_id[1:].hex()
    return f"schema GUID {text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _without_id(index: int, part: str, subject: Subject) -> str:
    return f"Record {index} has no schema id in its {part}, which subject {subject.rule} requires."


def _not_registered(index: int, part: str, schema_id: SchemaId, name: str) -> str:
    return f"Record {index} has {shown(schema_id)} in its {part}, which is not registered under subject {name}."


def _summary(errors: Sequence[tuple[int, str]]) -> str:
    texts = " ".join(text for _, text in errors[:SHOWN_ERRORS])
    return f"One or more records have been rejected due to {len(errors)} record errors in total, the first of them: {texts}"
