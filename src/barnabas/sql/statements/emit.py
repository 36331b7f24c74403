"""EMIT at the end of a query: when a view gives its rows.

EMIT FINAL (of ksqlDB) and EMIT ON WINDOW CLOSE (of RisingWave) are one: a row is given when it cannot change any more. EMIT CHANGES is the
rule without words.
"""

from __future__ import annotations

from barnabas.sql.dialect import Statement
from barnabas.sql.interface import SqlError
from barnabas.sql.states import not_supported

_FORMS = {("EMIT", "FINAL"): True, ("EMIT", "ON", "WINDOW", "CLOSE"): True, ("EMIT", "CHANGES"): False}


def _words(statement: Statement) -> tuple[str, ...]:
    words = [statement.word(at) for at in range(max(len(statement.tokens) - 4, 0), len(statement.tokens))]
    return next((form for form in _FORMS if tuple(words[-len(form) :]) == form), ())


def without_emit(statement: Statement) -> Statement:
    """A statement without EMIT at its end."""
    words = _words(statement)
    return Statement(statement.text, statement.tokens[: -len(words)]) if words else statement


def without_changes(statement: Statement) -> Statement:
    """A statement of a stream without EMIT CHANGES at its end. Raises SqlError for EMIT FINAL."""
    if emits_final(statement):
        raise not_supported(
            "EMIT FINAL belongs to a view",
            statement.position(len(statement.tokens) - len(_words(statement))),
            "CREATE MATERIALIZED VIEW v AS … EMIT FINAL, and STREAM v here",
        )
    return without_emit(statement)


def emits_final(statement: Statement) -> bool:
    """Whether rows are given when they are final."""
    return _FORMS.get(_words(statement), False)


def refused_emit(statement: Statement) -> SqlError | None:
    """The error of EMIT at the end of a query that is no view."""
    words = _words(statement)
    if not words:
        return None
    return not_supported(
        f"{' '.join(words)} belongs to a view", statement.position(len(statement.tokens) - len(words)),
        "CREATE MATERIALIZED VIEW v AS … keeps the query, and SUBSCRIBE v follows its changes",
    )  # fmt: skip
