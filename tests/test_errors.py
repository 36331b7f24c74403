"""Our table of error codes against kio's."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode

from barnabas.error_codes import code_name
from barnabas.errors import ConfigError, ErrorCode, FrameTooLarge, InvariantViolated, KafkaError


def test_codes_names_and_retriability_are_those_of_the_protocol() -> None:
    assert {(code.name.lower(), code.value, code.retriable) for code in ErrorCode} == {
        (code.name, code.value, code.retriable) for code in KioErrorCode
    }


def test_errors_say_what_they_carry() -> None:
    assert str(KafkaError(ErrorCode.INVALID_CONFIG, "no")) == "INVALID_CONFIG: no"
    assert str(KafkaError(ErrorCode.NOT_COORDINATOR)) == "NOT_COORDINATOR"
    assert str(ConfigError("retention.ms", "x", "a whole number")) == "invalid value 'x' for retention.ms: a whole number"
    assert str(InvariantViolated("broken", ["a", "b"])) == "broken\n  a\n  b"


@pytest.mark.parametrize(
    ("head", "hint"),
    [
        (b"GET ", "; it looks like HTTP"),
        (b"HTTP", "; it looks like HTTP"),
        (b"\x16\x03\x01\x02", "; it looks like a TLS handshake"),
        (b"\x7f\xff\xff\xff", ""),
        (b"\xff\xff\xff\xff", ""),
    ],
)
def test_the_protocol_of_a_wrong_peer_is_named(head: bytes, hint: str) -> None:
    size = int.from_bytes(head, signed=True)
    assert str(FrameTooLarge(size, 100)) == f"a frame of {size} bytes; allowed are 0 to 100{hint}"


def test_a_code_of_a_later_version_is_an_unknown_error() -> None:
    assert ErrorCode(9999) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert [code_name(code) for code in (9999, -1, 3)] == [
        "error code 9999",
        "UNKNOWN_SERVER_ERROR",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ]
