"""Records as text, there and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.errors import BadInput
from barnabas.cli.records import BadRecord, Record, parser_for, printer_for, unescape


class Message:
    """A record with the getters of confluent_kafka.Message."""

    def __init__(
        self,
        key: bytes | None = None,
        value: bytes | None = None,
        headers: list[tuple[str, bytes | None]] | None = None,
        timestamp: tuple[int, int] = (1, 1_700_000_000_000),
    ) -> None:
        self._key, self._value, self._headers, self._timestamp = key, value, headers, timestamp

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def headers(self) -> object:
        return self._headers

    def timestamp(self) -> object:
        return self._timestamp

    def topic(self) -> str:
        return "flights"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 42


def parse(line: bytes, format_name: str = "text", key_separator: bytes | None = None, null: bytes | None = None) -> Record:
    return parser_for(format_name, key_separator=key_separator, null_marker=null)(line)


def show(message: Message, format_name: str = "text", key_separator: bytes | None = None, null: bytes | None = None) -> bytes:
    return printer_for(format_name, key_separator=key_separator, null_marker=null)(message)


maybe_bytes = st.none() | st.binary(max_size=20)
header_lists = st.lists(st.tuples(st.text(max_size=5), maybe_bytes), max_size=3)


@given(key=maybe_bytes, value=maybe_bytes, headers=header_lists, timestamp=st.integers(0, 2**62))
def test_what_is_printed_as_json_is_read_back(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], timestamp: int
) -> None:
    line = show(Message(key, value, headers, (1, timestamp)), "json")
    assert line.count(b"\n") == 1
    assert parse(line.rstrip(b"\n"), "json") == Record(key, value, headers, timestamp, 3)


@given(key=st.binary(max_size=20), value=st.binary(max_size=20))
def test_what_is_printed_as_hex_is_read_back(key: bytes, value: bytes) -> None:
    line = show(Message(key, value), "hex", b":")
    assert parse(line.rstrip(b"\n"), "hex", b":")[:2] == (key, value)


def test_text_is_the_value() -> None:
    assert parse(b"a:b") == Record(None, b"a:b", [])
    assert show(Message(b"k", b"v")) == b"v\n"


def test_a_key_separator_splits_at_its_first_place() -> None:
    assert parse(b"k::v:w", key_separator=b"::") == Record(b"k", b"v:w", [])
    assert show(Message(b"k", b"v"), key_separator=b"::") == b"k::v\n"
    with pytest.raises(BadRecord, match="no key separator ':' in 'plain'"):
        parse(b"plain", key_separator=b":")


def test_the_null_marker_is_null() -> None:
    assert parse(b"k:NULL", key_separator=b":", null=b"NULL") == Record(b"k", None, [])
    assert parse(b"", null=b"") == Record(None, None, [])
    assert show(Message(b"k", None), key_separator=b":", null=b"NULL") == b"k:NULL\n"
    assert show(Message(b"k", None)) == b"\n"


def test_json_values_that_are_no_strings_stay_json() -> None:
    assert parse(b'{"value": {"delay": 5}}', "json").value == b'{"delay":5}'
    assert parse(b'{"headers": {"a": "b"}}', "json").headers == [("a", b"b")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"valeu": 1}', "unknown field 'valeu'"),
        (b'{"key_base64": "%"}', "not base64"),
        (b'{"headers": ["a"]}', "headers are a list"),
        (b'{"timestamp": "now"}', "whole numbers"),
    ],
)
def test_json_that_is_no_record_is_refused(line: bytes, reason: str) -> None:
    with pytest.raises(BadRecord, match=reason):
        parse(line, "json")


def test_hex_that_is_none_is_refused() -> None:
    with pytest.raises(BadRecord, match="not hexadecimal: 'xy'"):
        parse(b"xy", "hex")


def test_a_template_has_every_part_of_a_record() -> None:
    message = Message(b"k", b"v1", [("a", b"1"), ("b", None)], (1, 7))
    assert show(message, r"%t[%p]@%o %T %k=%v|%s|%K|%S|%h|100%%\n") == b"flights[3]@42 7 k=v1|v1|1|2|a=1,b=|100%\n"
    assert show(Message(None, None), "%k,%v,%K,%S", null=b"-") == b"-,-,-1,-1"


def test_a_template_reads_too() -> None:
    record = parse(b"9 k=a b;x=1,y (100%)", r"%T %k=%v;%h (100%%)\n")
    assert record == Record(b"k", b"a b", [("x", b"1"), ("y", None)], 9)
    with pytest.raises(BadRecord, match="not like the template"):
        parse(b"nothing", "%k=%v")
    with pytest.raises(BadRecord, match="a number is expected"):
        parse(b"x 1", "%T %v")


@pytest.mark.parametrize("template", ["%x", "%o", "%k%k"])
def test_parts_that_cannot_be_read_are_refused(template: str) -> None:
    with pytest.raises(BadInput, match="is not possible here"):
        parser_for(template, key_separator=None, null_marker=None)


def test_unknown_formats_and_parts_are_refused() -> None:
    with pytest.raises(BadInput, match="no format 'xml'"):
        printer_for("xml", key_separator=None, null_marker=None)
    with pytest.raises(BadInput, match="no format 'xml'"):
        parser_for("xml", key_separator=None, null_marker=None)
    with pytest.raises(BadInput, match="%q is not a token of a template"):
        printer_for("%q", key_separator=None, null_marker=None)


def test_json_names_the_kind_of_timestamp() -> None:
    assert json.loads(show(Message(timestamp=(2, 5)), "json"))["timestamp_type"] == "LogAppendTime"
    assert "timestamp" not in json.loads(show(Message(timestamp=(0, -1)), "json"))


@pytest.mark.parametrize(
    ("text", "data"),
    [(r"\t", b"\t"), (r"a\nb", b"a\nb"), (r"\x00\xff", b"\x00\xff"), (r"\\n", b"\\n"), (r"\q", b"\\q"), ("é", "é".encode())],
)
def test_escapes(text: str, data: bytes) -> None:
    assert unescape(text) == data
