"""Words of Spark SQL between queries and behind GROUP BY, written as Postgres has them: MINUS, and `GROUP BY a, b GROUPING SETS (…)`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType


def with_plain_sets(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens of a statement with EXCEPT for MINUS, and without columns that only name those of grouping sets."""
    if not any(each.token_type == TokenType.GROUPING_SETS or each.text.upper() == "MINUS" for each in tokens):
        return tokens
    made: list[Token] = []
    for place, token in enumerate(tokens):
        if token.token_type == TokenType.GROUPING_SETS:
            _drop_grouped(made)
        is_minus = bool(made) and _is_minus(tokens, place)
        made.append(Token(TokenType.EXCEPT, "EXCEPT", token.line, token.col, token.start, token.end) if is_minus else token)
    return made


def _drop_grouped(made: list[Token]) -> None:
    """The sets name the columns that count. With a comma in front of them, the columns are those of Postgres' product."""
    if not made or made[-1].token_type in (TokenType.COMMA, TokenType.GROUP_BY):
        return
    depth = 0
    for place in range(len(made) - 1, -1, -1):
        depth += (made[place].token_type == TokenType.R_PAREN) - (made[place].token_type == TokenType.L_PAREN)
        if depth < 0:
            return
        if depth == 0 and made[place].token_type == TokenType.GROUP_BY:
            del made[place + 1 :]
            return


def _is_minus(tokens: Sequence[Token], place: int) -> bool:
    """Whether a word is MINUS between two queries, and not a name."""
    token = tokens[place]
    if token.token_type != TokenType.VAR or token.text.upper() != "MINUS":
        return False
    kinds = [each.token_type for each in tokens[place + 1 : place + 3]]
    if kinds[:1] in ([TokenType.ALL], [TokenType.DISTINCT], [TokenType.L_PAREN]):
        del kinds[:1]
    return kinds[:1] == [TokenType.SELECT]
