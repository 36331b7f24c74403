"""Columns from samples of JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.tables import inference
from barnabas.tables.column_types import columns_text
from barnabas.tables.declaration import declared
from barnabas.tables.errors import TableError
from barnabas.tables.inference import infer_values
from barnabas.tables.json_format import JsonFormat
from tests.tables.formats.json_texts import LEAVES, objects
from tests.tables.formats.test_json_kernels import binary, reasons


def inferred(*values: Any) -> str:
    return columns_text(infer_values([json.dumps({"x": value}).encode() for value in values]))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, None, -(2**63)], "bigint"),
        ([1, 2.5], "double"),
        ([2**63], "double"),
        ([1, "a"], "text"),
        ([True, 1], "text"),
        ([True], "boolean"),
        ([None], "text"),
        (["2026-01-02"], "date"),
        (["2026-01-02", "2026-01-02T03:04:05"], "timestamp_ntz"),
        (["2026-01-02T03:04:05Z", "2026-01-02T03:04:05"], "timestamptz"),
        (["2026-01-02T03:04:05+01:00"], "timestamptz"),
        (["2026-01-02", "tomorrow"], "text"),
        (["0189d1e2-0000-7000-8000-000000000000"], "uuid"),
        (["0189d1e2-0000-7000-8000-000000000000", "x"], "text"),
        ([[1], [], [None, 2.5]], "double[]"),
        ([[]], "text[]"),
        ([{"a": 1}, {"b": ["x"]}], "struct<a bigint, b text[]>"),
        ([{"a": 1}, 5], "json"),
        ([[1], {}], "json"),
        ([{}], "json"),
        ([{"a": {"b": 1}}, {"a": [1]}], "struct<a json>"),
    ],
)
def test_types_widen(values: list[Any], expected: str) -> None:
    assert inferred(*values) == f"x {expected}"


def test_the_text_of_columns_can_be_declared() -> None:
    text = inferred({"a b": 1, "c": {"d": [["x"]]}}, None)
    assert columns_text(declared(text)) == text


@given(st.lists(st.one_of(objects(2), LEAVES), min_size=1, max_size=6))
@settings(max_examples=150, deadline=None)
def test_the_sample_fits(texts: list[str]) -> None:
    payloads: list[bytes | None] = [text.encode("utf-8", "replace") for text in texts]
    try:
        fields = infer_values(payloads)
    except TableError:
        return
    found = JsonFormat(fields).decode(binary(payloads), None, [field.name for field in fields])
    for payload, reason in zip(payloads, reasons(found), strict=False):
        assert (
            reason is None
            or payload is None
            or not payload.startswith(b"{")
            or "out of the range of double" in reason
            or "surrogate" in reason
        )


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([], "no records with a value"),
        ([None], "no records with a value"),
        ([b"[1]"], r"the last one is \[1\]"),
        ([b"hello"], "it is no JSON"),
        ([b"{}"], "have no fields"),
        ([b'{"": 1}'], "have no fields with a name"),
    ],
)
def test_samples_without_objects_have_a_reason(values: list[bytes | None], reason: str) -> None:
    with pytest.raises(TableError, match=reason):
        infer_values(values)


@pytest.mark.parametrize("name", ["", "\\ud800", "a\\udfff"])
def test_fields_that_no_column_can_be_named_after_get_none(name: str) -> None:
    text = columns_text(infer_values([f'{{"{name}": 1, "a": {{"{name}": 2, "b": 3}}, "c": {{"{name}": 4}}}}'.encode()]))
    assert text == "a struct<b bigint>, c json"
    assert columns_text(declared(text)) == text


def test_objects_with_many_or_deep_fields_are_json() -> None:
    many = {f"k{number}": number for number in range(inference.MAX_FIELDS + 1)}
    assert inferred(many) == "x json"
    deep: Any = 1
    for _ in range(inference.MAX_LEVELS + 2):
        deep = {"d": deep}
    assert inferred(deep).endswith("json" + ">" * (inference.MAX_LEVELS - 1))
    with pytest.raises(TableError, match="more than 1000 different fields; the format json without columns"):
        infer_values([json.dumps(many).encode()])
