"""The text of a function: its forms, and what is wrong with it."""

from __future__ import annotations

import pytest

from barnabas.functions.body import fault, loaded
from barnabas.functions.definition import BadFunction
from tests.functions.making import function


@pytest.mark.parametrize(
    "body",
    [
        "return a * 2",
        " return a * 2 ",
        "\n    b = a\n    return b * 2\n",
        "\n\tif a > 0:\n\t\treturn a * 2\n\treturn a * 2",
        "from math import prod\nreturn prod([a, 2])",
        "def twice(x):\n    return x * 2\nreturn twice(a)",
        "from __future__ import annotations\nreturn a * 2",
        "return args[0] * 2",
    ],
)
def test_a_body_that_returns(body: str) -> None:
    made = function(body)
    assert made.handler == ""
    assert loaded(made)(21) == 42


@pytest.mark.parametrize(
    "body",
    [
        "def f(a):\n    return a * 2",
        "\n  import math\n  def f(x):\n      return x * 2\n",
        "f = lambda a: a * 2",
        "try:\n    import nothing_of_this_name\nexcept ImportError:\n    def f(a):\n        return a * 2",
    ],
)
def test_a_body_that_defines(body: str) -> None:
    made = function(body)
    assert made.handler == "f"
    assert loaded(made)(21) == 42


def test_a_handler() -> None:
    made = function("def other(a):\n    return a * 2", handler="other")
    assert loaded(made)(21) == 42
    with pytest.raises(BadFunction, match="or returns a value itself"):
        function("return a", handler="other")


def test_a_body_that_gives_nothing() -> None:
    assert loaded(function("b = a"))(1) is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return a **", "syntax error in line 1 of the function"),
        ("x = 1\nreturn (", "line 2"),
        ("def g(a):\n    return a", 'neither returns a value nor defines "f"'),
        ("nonlocal a\nreturn a", "syntax error"),
        ("return '\x00'", "cannot be read|syntax error"),
        ("return " + "(" * 500 + "a" + ")" * 500, "cannot be read|syntax error"),
    ],
)
def test_a_bad_body(body: str, message: str) -> None:
    with pytest.raises(BadFunction, match=message):
        function(body)


def test_a_name_that_python_lacks() -> None:
    with pytest.raises(BadFunction, match="is no name in Python"):
        function("return 1", "a-b BIGINT")


def test_the_line_of_an_error() -> None:
    made = function("\nb = 0\nreturn a // b\n")
    code = loaded(made)
    with pytest.raises(ZeroDivisionError) as caught:
        code(1)
    message, detail = fault(made, caught.value)
    assert message.startswith("ZeroDivisionError: ")
    assert message.endswith("(line 3 of the function)")
    assert detail == "line 3: return a // b"


def test_definitions_that_differ_have_other_names() -> None:
    one, same, other = function("return a"), function("return a"), function("return a + 1")
    assert one.call == same.call
    assert one.call != other.call
    assert function("return a", volatility="volatile").call != one.call
