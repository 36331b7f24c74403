"""A Protobuf schema beyond a limit is refused with a text that names the limit; one at the limit is taken."""

from __future__ import annotations

import pytest

from barnabas.limits import MAX_PROTOBUF_CHARACTERS, MAX_PROTOBUF_DEPTH, MAX_PROTOBUF_FILES, MAX_PROTOBUF_NAMES
from barnabas.registry.formats.interface import InvalidSchema
from barnabas.registry.formats.protobuf import FORMAT

HEAD = 'syntax = "proto3";\n'


def nested(depth: int) -> str:
    return HEAD + "".join(f"message M{number} {{ " for number in range(depth)) + "} " * depth


def long_text(characters: int) -> str:
    text = HEAD + "message M {}"
    return text + " " * (characters - len(text))


def values(count: int) -> str:
    """An enum with so many names, its own included."""
    lines = "".join(f"V{number} = {number};" for number in range(count - 1))
    return HEAD + f"enum E {{ {lines} }}"


def test_a_schema_within_the_limits_is_taken() -> None:
    assert FORMAT.parse(long_text(MAX_PROTOBUF_CHARACTERS), {}).has_top_level_field("a") is False
    assert FORMAT.parse(nested(10), {}).canonical.count("message") == 10


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (long_text(MAX_PROTOBUF_CHARACTERS + 1), str(MAX_PROTOBUF_CHARACTERS)),
        (nested(MAX_PROTOBUF_DEPTH + 1), str(MAX_PROTOBUF_DEPTH)),
        (values(MAX_PROTOBUF_NAMES + 2), str(MAX_PROTOBUF_NAMES)),
    ],
)
def test_a_schema_beyond_a_limit_is_refused(text: str, named: str) -> None:
    with pytest.raises(InvalidSchema, match=named):
        FORMAT.parse(text, {})


def test_a_schema_needs_a_bounded_number_of_others() -> None:
    others = {f"{number}.proto": HEAD for number in range(MAX_PROTOBUF_FILES + 1)}
    with pytest.raises(InvalidSchema, match=f"at most {MAX_PROTOBUF_FILES}"):
        FORMAT.parse(HEAD + "message M {}", others)
