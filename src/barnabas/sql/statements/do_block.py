"""DO of the one form that tools write for types: CREATE TYPE, unless the type is there.

    DO $$ BEGIN CREATE TYPE mood AS ENUM ('sad', 'ok'); EXCEPTION WHEN duplicate_object THEN NULL; END $$

Any other block is refused, since there is no language for procedures.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from barnabas.sql.dialect import Statement, split
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.results import Done
from barnabas.sql.statements.enums import create_type
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready
from barnabas.sql.states import DUPLICATE_OBJECT, not_supported

_SKIPS = ["EXCEPTION", "WHEN", "DUPLICATE_OBJECT", "THEN", "NULL"]
_LANGUAGE = ["LANGUAGE", "PLPGSQL"]


def do_block(session: Host, statement: Statement, _: Sequence[pa.DataType | None]) -> Ready:
    """DO 'block' [LANGUAGE plpgsql]. Raises SqlError 0A000 for any block but one of CREATE TYPE."""
    types, skips = _types(statement)
    made = [create_type(session, each) for each in types]

    def run(_: Sequence[object]) -> Result:
        try:
            for each in made:
                each.run(())
        except SqlError as error:
            if not skips or error.sqlstate != DUPLICATE_OBJECT:
                raise
        return Done("DO")

    return Ready(statement.text, run)


def _types(statement: Statement) -> tuple[list[Statement], bool]:
    """The statements of a block, and whether a type that is there ends it without an error. Raises SqlError."""
    words = [statement.word(at) for at in range(1, len(statement.tokens))]
    place = 2 if words[:2] == _LANGUAGE else 0
    token = statement.tokens[1 + place] if len(words) > place else None
    if (
        token is None
        or token.token_type not in (TokenType.STRING, TokenType.HEREDOC_STRING)
        or words[place + 1 :] not in ([], _LANGUAGE)
    ):
        raise _refused(statement)
    parts = split(str(token.text))
    if len(parts) < 2 or parts[0].word(0) != "BEGIN" or _words(parts[-1]) != ["END"]:
        raise _refused(statement)
    skips = _words(parts[-2]) == _SKIPS
    first = Statement(parts[0].text, parts[0].tokens[1:])
    types = [first, *parts[1 : -2 if skips else -1]]
    if any((each.word(0), each.word(1)) != ("CREATE", "TYPE") for each in types):
        raise _refused(statement)
    return types, skips


def _words(statement: Statement) -> list[str]:
    return [statement.word(at) for at in range(len(statement.tokens))]


def _refused(statement: Statement) -> SqlError:
    hint = "there is no language for procedures; DO takes CREATE TYPE … EXCEPTION WHEN duplicate_object THEN NULL alone"
    return not_supported("DO is not supported", statement.position(0), hint)
