"""Our answers to the old versions beside those of Apache Kafka 3.9."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.testing import Broker
from tests.differential.older_formats.record import GOLDEN, run
from tests.differential.older_formats.script import CASES
from tests.retention import NO_RETENTION_CHECKS

UNKNOWN, UNSUPPORTED_CODEC, INVALID_TIME, INVALID_RECORD = -1, 76, 32, 87
# Kafka answers UNKNOWN_SERVER_ERROR to these bytes; barnabas returns a specific error.
TOLD_BETTER = {
    "codec 5": UNSUPPORTED_CODEC,
    "broken gzip": INVALID_RECORD,
    "broken lz4": INVALID_RECORD,
    "lz4 with the other checksum": INVALID_RECORD,
    "time -5": INVALID_TIME,
    "time -5 gzip": INVALID_TIME,
    "length past the end": INVALID_RECORD,
}
# Kafka 4 changed the default of message.timestamp.after.max.ms.
OF_KAFKA_4 = {"produce future"}
RECORDED: dict[str, Any] = json.loads(GOLDEN.read_text())


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    with Broker(NO_RETENTION_CHECKS) as broker:
        yield "127.0.0.1", broker.port


@pytest.mark.parametrize("name", [name for name in CASES if name not in OF_KAFKA_4])
def test_the_answers_are_those_of_kafka(name: str, address: tuple[str, int]) -> None:
    ours = run(name, address)
    if name.startswith("fetch"):
        _compare_fetched(RECORDED[name], ours, is_told_more=name == "fetch with little room")
    else:
        assert ours == _told_better(name, RECORDED[name])


def test_every_case_is_recorded() -> None:
    assert set(RECORDED) == set(CASES)


def _told_better(name: str, recorded: Any) -> Any:
    code = next((code for each, code in TOLD_BETTER.items() if name.endswith(each)), None)
    if code is not None and recorded["answer"][0][1] == UNKNOWN:
        recorded["answer"][0][1] = code
    return recorded


def _compare_fetched(theirs: Any, ours: Any, *, is_told_more: bool) -> None:
    """Kafka fills an answer up to the size of what it has stored, by a message that is cut off, or cuts it off there. So what is whole of
    theirs begins ours.

    Args:
        is_told_more: where a batch does not fit Kafka gives nothing; here the client gets the messages that fit, the last one cut off.
    """
    if _is_partition(theirs):
        assert ours[:3] == theirs[:3]
        whole = [each for each in theirs[3] if each != "cut"]
        assert ours[3][: len(whole)] == whole
        if whole == theirs[3] and not (is_told_more and not whole):
            assert ours[3] == whole
        return
    assert type(ours) is type(theirs)
    assert len(ours) == len(theirs)
    for key in theirs if isinstance(theirs, dict) else range(len(theirs)):
        _compare_fetched(theirs[key], ours[key], is_told_more=is_told_more)


def _is_partition(found: Any) -> bool:
    return isinstance(found, list) and len(found) == 4 and isinstance(found[0], int)
