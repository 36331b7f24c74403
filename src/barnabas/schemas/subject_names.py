"""The subjects under which serialisers look for schemas."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.schemas.errors import SchemaDataError

# arguments: the topic, whether the schema is for keys, the record's full name
SubjectName = Callable[[str | None, bool, str | None], str]


def topic_name(topic: str | None, is_key: bool, record: str | None) -> str:
    """`TOPIC-value` or `TOPIC-key`: one subject for the values of a topic."""
    if not topic:
        raise SchemaDataError("the subject is named after the topic, and none is given")
    return f"{topic}-{'key' if is_key else 'value'}"


def record_name(topic: str | None, is_key: bool, record: str | None) -> str:
    """The full name of the record: one subject for a kind of record in all topics."""
    if not record:
        raise SchemaDataError("the subject is named after the record, and the schema gives it no name")
    return record


def topic_record_name(topic: str | None, is_key: bool, record: str | None) -> str:
    """`TOPIC-RECORD`: a subject for each kind of record in a topic."""
    if not topic:
        raise SchemaDataError("the subject is named after the topic, and none is given")
    return f"{topic}-{record_name(topic, is_key, record)}"


STRATEGIES: dict[str, SubjectName] = {"topic": topic_name, "record": record_name, "topic-record": topic_record_name}
