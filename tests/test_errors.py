"""Our table of error codes against kio's."""

from __future__ import annotations

from kio.schema.errors import ErrorCode as KioErrorCode

from barnabas.errors import ConfigError, ErrorCode, InvariantViolated, KafkaError


def test_codes_names_and_retriability_are_those_of_the_protocol() -> None:
    assert {(code.name.lower(), code.value, code.retriable) for code in ErrorCode} == {
        (code.name, code.value, code.retriable) for code in KioErrorCode
    }


def test_errors_say_what_they_carry() -> None:
    assert str(KafkaError(ErrorCode.INVALID_CONFIG, "no")) == "INVALID_CONFIG: no"
    assert str(KafkaError(ErrorCode.NOT_COORDINATOR)) == "NOT_COORDINATOR"
    assert str(ConfigError("retention.ms", "x", "a whole number")) == "invalid value 'x' for retention.ms: a whole number"
    assert str(InvariantViolated("broken", ["a", "b"])) == "broken\n  a\n  b"
