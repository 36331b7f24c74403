"""The topic of functions, for servers of SQL and for the engine of views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas import limits
from barnabas.client.config import ClientConfig
from barnabas.client.keyed_topic import KeyedTopic
from barnabas.functions.definition import Function, FunctionError, Stored, decode, encode

TOPIC = "_barnabas_sql_functions"


class NotThere(FunctionError):
    """A view uses a function that the topic does not have."""


def functions_of(config: ClientConfig) -> KeyedTopic[Stored]:
    """The functions of a cluster, by their signatures."""
    return KeyedTopic(
        config, TOPIC, encode=encode, decode=decode, most_records=limits.MAX_FUNCTIONS, most_bytes=limits.MAX_FUNCTION_BYTES
    )


def check_stored(config: ClientConfig, functions: Sequence[Function]) -> None:
    """Whether the topic has these functions: only those who may write it choose code. Raises NotThere, ClientError, KafkaError."""
    if not functions:
        return
    topic = functions_of(config)
    try:
        missing = missing_in(topic.follow(), functions)
    finally:
        topic.close()
    if missing:
        raise NotThere(
            f"the topic {TOPIC} does not have the function {missing[0].signature} that the view uses; create the view again"
        )


def missing_in(stored: Mapping[str, Stored], functions: Sequence[Function]) -> list[Function]:
    """Those of the functions that are no definition of the topic."""
    known = {each.digest for one in stored.values() for each in (one.function, *one.kept)}
    return [each for each in functions if each.digest not in known]
