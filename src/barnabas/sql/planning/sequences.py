"""Functions of sequences in a query: `nextval('s'::regclass)` and its kin become calls of the session's own functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from barnabas.sql.catalog.relations import Relation
from barnabas.sql.catalog.sequence_relation import SequenceRelation
from barnabas.sql.catalog.sequences import parts_of_text
from barnabas.sql.duck import calls
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.states import UNDEFINED_FUNCTION, WRONG_OBJECT

Find = Callable[[Sequence[str], int | None], Relation]
_COUNTS = {"nextval": (1,), "currval": (1,), "lastval": (0,), "setval": (2, 3)}
_OWN = {"nextval": calls.NEXT, "currval": calls.CURRENT, "lastval": calls.LAST, "setval": calls.SET}


def read_sequences(tree: Any, find: Find) -> None:
    """Rewrite a tree. Raises SqlError for a literal that names no sequence, and for a wrong number of arguments."""
    for node in list(tree.find_all(exp.Anonymous)):
        name = str(node.this).lower()
        if name not in _COUNTS:
            continue
        arguments = node.expressions
        if len(arguments) not in _COUNTS[name]:
            raise SqlError(
                UNDEFINED_FUNCTION, f"function {name} has no form with {len(arguments)} arguments", position=position_in(node)
            )
        if arguments:
            check_name(arguments[0], find)
        made = exp.Anonymous(this=_OWN[name], expressions=_arguments(name, arguments))
        if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
            node.replace(exp.Alias(this=made, alias=exp.to_identifier(name, quoted=True)))
        else:
            node.replace(made)


def _arguments(name: str, arguments: Sequence[Any]) -> list[Any]:
    if name == "lastval":
        return [exp.false()]
    found: list[Any] = [exp.cast(_plain(arguments[0]).copy(), "text")]
    if name == "setval":
        found.append(exp.cast(arguments[1].copy(), "bigint"))
        found.append(arguments[2].copy() if len(arguments) == 3 else exp.true())
    return found


def _plain(argument: Any) -> Any:
    """The name without a cast to regclass or text."""
    while isinstance(argument, exp.Cast) and isinstance(argument.this, (exp.Literal, exp.Parameter, exp.Cast)):
        argument = argument.this
    return argument


def name_in(call: Any) -> str | None:
    """The text of the name in `nextval('s')`; None for everything else."""
    if not isinstance(call, exp.Anonymous) or str(call.this).lower() != "nextval" or len(call.expressions) != 1:
        return None
    argument = _plain(call.expressions[0])
    return str(argument.name) if isinstance(argument, exp.Literal) and argument.is_string else None


def check_name(argument: Any, find: Find) -> None:
    """Raises SqlError 42P01, 42809 for a literal that names no sequence."""
    argument = _plain(argument)
    if not isinstance(argument, exp.Literal) or not argument.is_string:
        return
    relation = find(parts_of_text(argument.name), position_in(argument))
    if not isinstance(relation, SequenceRelation):
        raise SqlError(WRONG_OBJECT, f'"{relation.name}" is not a sequence', position=position_in(argument))
