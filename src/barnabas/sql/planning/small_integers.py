"""Arithmetic of small integers with literals, as in Postgres: a literal is an integer, so the result is one too.

DuckDB gives a literal the type of the other side, where `2::smallint * 20000` overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.planning.literals import whole_number

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod)
_SMALL = frozenset({exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.UTINYINT})
_MOST = 1 << 31


def widen_literals(tree: Any, field_of: Callable[[exp.Column], pa.Field[Any] | None]) -> None:
    """Make integers of the literals beside small integers."""
    for node in list(tree.find_all(*_ARITHMETIC)):
        for side, other in ((node.left, node.right), (node.right, node.left)):
            if _is_integer(side) and _is_small(other, field_of):
                side.replace(exp.cast(side.copy(), exp.DType.INT))


def _is_integer(node: Any) -> bool:
    inner = node.this if isinstance(node, exp.Neg) else node
    number = whole_number(inner)
    return number is not None and number < _MOST


def _is_small(node: Any, field_of: Callable[[exp.Column], pa.Field[Any] | None]) -> bool:
    match node:
        case exp.Column():
            found = field_of(node)
            return found is not None and bool(pa.types.is_integer(found.type)) and found.type.bit_width <= 16
        case exp.Cast():
            return node.to.this in _SMALL
        case exp.Paren() | exp.Neg() | exp.Abs():
            return _is_small(node.this, field_of)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.IntDiv() | exp.Mod():
            return _is_small(node.left, field_of) and _is_small(node.right, field_of)
    return False
