"""Java's .properties files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.properties import parse_properties_file
from barnabas.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a\tb=c", {"a": "b=c"}),
        ("a==b", {"a": "=b"}),
        ("a = : b", {"a": ": b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("# a=b\n! c=d\n  # e=f\ng=#h", {"g": "#h"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1,\\\n   2,\\\n   3", {"a": "1,2,3"}),
        ("a=1\\\n# not a comment", {"a": "1# not a comment"}),
        ("# a comment \\\na=b", {"a": "b"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        (r"a\ b=c", {"a b": "c"}),
        (r"a\=b=c", {"a=b": "c"}),
        (r"a\:b:c", {"a:b": "c"}),
        (r"a=\t\n\r\f\q\\", {"a": "\t\n\r\fq\\"}),
        (r"a=\u00e9\u20AC", {"a": "é€"}),
        (r"a=\ud83d\ude00", {"a": "😀"}),
        ("log.dirs=C:\\\\data", {"log.dirs": "C:\\data"}),
    ],
)
def test_reads_as_java_does(text: str, expected: dict[str, str]) -> None:
    assert parse_properties_file(text) == expected


@pytest.mark.parametrize("text", [r"a=\u12", r"a=\uzzzz", r"a=\u"])
def test_a_broken_escape_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="hexadecimal"):
        parse_properties_file(text)


def escaped(text: str) -> str:
    """Every character as Java could write it."""
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(TEXT, TEXT, max_size=5))
def test_whatever_is_escaped_comes_back(properties: dict[str, str]) -> None:
    file = "\n".join(f"{escaped(key)}={escaped(value)}" for key, value in properties.items() if key or value)
    assert parse_properties_file(file) == {key: value for key, value in properties.items() if key or value}


@given(st.text())
def test_nothing_but_config_errors(text: str) -> None:
    try:
        parse_properties_file(text)
    except ConfigError:
        return
