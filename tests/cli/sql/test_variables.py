"""Values of variables in statements, and the line of a copy."""

from __future__ import annotations

import pytest

from barnabas.cli.errors import BadInput
from barnabas.cli.sql.copying import parse_copy
from barnabas.cli.sql.variables import checked_name, filled

VALUES = {"n": "5", "who": "O'Neil", "table": 'a"b'}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("limit :n", "limit 5"),
        ("where a = :'who'", "where a = 'O''Neil'"),
        ('from :"table"', 'from "a""b"'),
        ("':n' -- :n\n$$:n$$", "':n' -- :n\n$$:n$$"),
        ("a::n, :unknown, a[1:n]", "a::n, :unknown, a[15]"),
    ],
)
def test_variables_are_replaced_outside_of_quotes(text: str, shown: str) -> None:
    assert filled(text, VALUES) == shown


def test_a_name_has_letters_digits_and_underscores() -> None:
    assert checked_name("a_1") == "a_1"
    with pytest.raises(BadInput, match="'1a' is not the name of a variable"):
        checked_name("1a")


@pytest.mark.parametrize(
    ("text", "statement", "path", "is_from"),
    [
        ("orders from 'a b.csv' csv header", "COPY orders FROM STDIN csv header", "a b.csv", True),
        ("orders (a, b) FROM x.csv;", "COPY orders (a, b) FROM STDIN", "x.csv", True),
        ("(select a from b) to 'it''s'", "COPY (select a from b) TO STDOUT", "it's", False),
        ('"from" to x with (format csv)', 'COPY "from" TO STDOUT with (format csv)', "x", False),
    ],
)
def test_a_copy_names_a_table_or_query_and_a_file(text: str, statement: str, path: str, is_from: bool) -> None:
    assert parse_copy(text) == (statement, path, is_from)


@pytest.mark.parametrize("text", ["", "orders", "orders from", "from 'a'", "(select 1 from 'a'"])
def test_an_incomplete_copy_is_none(text: str) -> None:
    assert parse_copy(text) is None
