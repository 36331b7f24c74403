"""Which expressions are never null."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlglot import exp

from barnabas.sql.continuous.parts import Part, source_of

_ALL = (
    exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Paren, exp.Not, exp.And, exp.Or, exp.EQ, exp.NEQ, exp.LT, exp.GT, exp.LTE, exp.GTE, exp.Lower,
    exp.Upper, exp.Concat, exp.DPipe, exp.TimestampTrunc, exp.DateTrunc, exp.DateBin, exp.Struct, exp.Round, exp.Floor, exp.Ceil, exp.Abs,
)  # fmt: skip
_CALLS = ("time_bucket", "date_trunc")


def is_never_null(tree: Any, part: Part, never: Collection[str]) -> bool:
    """Whether an expression is never null, where columns of the part's node are not."""

    def every(trees: Any) -> bool:
        return all(is_never_null(each, part, never) for each in trees if isinstance(each, exp.Expression))

    match tree:
        case exp.Column():
            source = source_of(tree)
            return source is not None and part.columns.get((source, tree.name)) in never
        case exp.Literal() | exp.Boolean() | exp.Interval() | exp.Var() | exp.DataType() | exp.Is() | exp.Exists():
            return True
        case exp.Cast() if not isinstance(tree, exp.TryCast):
            return is_never_null(tree.this, part, never)
        case exp.Coalesce():
            return any(is_never_null(each, part, never) for each in (tree.this, *tree.expressions))
        case exp.Case():
            if tree.args.get("default") is None or not is_never_null(tree.args["default"], part, never):
                return False
            return every(each.args["true"] for each in tree.args["ifs"])
        case exp.Anonymous() if str(tree.this).lower() in _CALLS:
            return every(tree.expressions)
    return isinstance(tree, _ALL) and every(tree.iter_expressions())
