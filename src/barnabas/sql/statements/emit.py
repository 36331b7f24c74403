"""EMIT at the end of a query: when a view gives its rows.

EMIT FINAL (of ksqlDB) and EMIT ON WINDOW CLOSE (of RisingWave) are one: a row is given when it cannot change any more. EMIT CHANGES is the
rule without words.
"""

from __future__ import annotations

from barnabas.sql.dialect import Statement, statement_of
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


def taken_emit(statement: Statement) -> tuple[Statement, bool]:
    """A statement without EMIT at its end, and whether rows are given when they are final."""
    return without_emit(statement), emits_final(statement)


def emits_final(statement: Statement) -> bool:
    """Whether rows are given when they are final."""
    return _FORMS.get(_words(statement), False)


def has_emit(statement: Statement) -> bool:
    """Whether EMIT is at its end."""
    return bool(_words(statement))


def refused_emit(statement: Statement) -> SqlError | None:
    """The error of EMIT at the end of a query that is no view."""
    words = _words(statement)
    if not words:
        return None
    return not_supported(
        f"{' '.join(words)} belongs to a view", statement.position(len(statement.tokens) - len(words)),
        "CREATE MATERIALIZED VIEW v AS … keeps the query, and SUBSCRIBE v follows its changes",
    )  # fmt: skip


def with_emit_last(statement: Statement) -> Statement:
    """A statement with EMIT in front of its AS, as RisingWave has it, with EMIT at its end. Raises SqlError."""
    words = [statement.word(at) for at in range(len(statement.tokens))]
    last = words.index("AS") if "AS" in words else 0
    for form in _FORMS:
        at = last - len(form)
        if at > 0 and tuple(words[at:last]) == form:
            text, tokens = statement.text, statement.tokens
            begin, end = text[tokens[0].start : tokens[at].start], text[tokens[last].start : tokens[-1].end + 1]
            left_out = " " * (tokens[last].start - tokens[at].start)  # errors tell positions in the text that the user sees
            return statement_of(f"{' ' * tokens[0].start}{begin}{left_out}{end} {' '.join(form)}")
    return statement
