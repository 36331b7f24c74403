"""Windows of time in FROM as Flink writes them, in words that sqlglot reads.

TABLE(TUMBLE(TABLE t, DESCRIPTOR(at), size))              tumble(t, DESCRIPTOR(at), size)
SESSION(TABLE t PARTITION BY k, DESCRIPTOR(at), gap)      session(t, partition_by(k), DESCRIPTOR(at), gap)
SESSION(t, at, gap) PARTITION BY k                        session(t, at, gap, partition_by(k))
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

WINDOWS = ("TUMBLE", "HOP", "SESSION")
PARTITION = "partition_by"


def with_plain_windows(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens with windows of time as functions of a table."""
    if not any(str(each.text).upper() in WINDOWS for each in tokens):
        return tokens
    made = list(tokens)
    at = 0
    while at < len(made):
        if _is_call(made, at):
            at = _read(made, at)
        at += 1
    return made


def _is_call(tokens: Sequence[Token], at: int) -> bool:
    """Whether a window of time begins in a FROM."""
    if at == 0 or at + 1 >= len(tokens) or tokens[at].token_type not in (TokenType.VAR, TokenType.SESSION):
        return False
    before = tokens[at - 1].token_type
    in_from = before in (TokenType.FROM, TokenType.JOIN, TokenType.COMMA) or (
        before == TokenType.L_PAREN and _is_table(tokens, at - 2)
    )
    return str(tokens[at].text).upper() in WINDOWS and tokens[at + 1].token_type == TokenType.L_PAREN and in_from


def _is_table(tokens: Sequence[Token], at: int) -> bool:
    return at >= 0 and tokens[at].token_type == TokenType.TABLE


def _read(tokens: list[Token], at: int) -> int:
    """Rewrite a window; gives the place of its name."""
    tokens[at] = _word(tokens[at], str(tokens[at].text))
    end = _closing(tokens, at + 1)
    if _is_table(tokens, at - 2) and end + 1 < len(tokens):
        del tokens[end + 1]
        del tokens[at - 2 : at]
        at, end = at - 2, end - 2
    _move_partition(tokens, end)
    inner = at + 2
    while inner < _closing(tokens, at + 1):
        if tokens[inner].token_type == TokenType.TABLE:
            del tokens[inner]
        elif tokens[inner].token_type == TokenType.PARTITION_BY:
            stop = _end_of_list(tokens, inner + 1, _closing(tokens, at + 1))
            tokens[inner:stop] = _partition(tokens[inner], tokens[inner + 1 : stop])
        inner += 1
    return at


def _move_partition(tokens: list[Token], end: int) -> None:
    """PARTITION BY behind the bracket becomes the last argument."""
    if end + 1 >= len(tokens) or tokens[end + 1].token_type != TokenType.PARTITION_BY:
        return
    stop = end + 2
    while stop < len(tokens) and _continues(tokens, stop, end + 2):
        stop += 1
    tokens[end:stop] = [*_partition(tokens[end + 1], tokens[end + 2 : stop]), tokens[end]]


def _continues(tokens: Sequence[Token], at: int, start: int) -> bool:
    """Whether a token belongs to a list of names, or to one in brackets."""
    if tokens[start].token_type == TokenType.L_PAREN:
        return at <= _closing(tokens, start)
    kind, is_first = tokens[at].token_type, at == start
    if kind in (TokenType.COMMA, TokenType.DOT):
        return True
    return kind in (TokenType.VAR, TokenType.IDENTIFIER) and (
        is_first or tokens[at - 1].token_type in (TokenType.COMMA, TokenType.DOT)
    )


def _end_of_list(tokens: Sequence[Token], at: int, end: int) -> int:
    """Where the columns of PARTITION BY end: before the comma in front of DESCRIPTOR or of a named argument."""
    while at < end:
        if tokens[at].token_type == TokenType.COMMA and (
            str(tokens[at + 1].text).upper() == "DESCRIPTOR" or tokens[at + 2].token_type == TokenType.FARROW
        ):
            return at
        at += 1
    return end


def _partition(like: Token, columns: Sequence[Token]) -> list[Token]:
    in_brackets = len(columns) > 1 and columns[0].token_type == TokenType.L_PAREN and _closing(columns, 0) == len(columns) - 1
    inner = columns[1:-1] if in_brackets else columns
    brackets = [_like(like, TokenType.L_PAREN, "("), _like(like, TokenType.R_PAREN, ")")]
    return [_like(like, TokenType.COMMA, ","), _word(like, PARTITION), brackets[0], *inner, brackets[1]]


def _closing(tokens: Sequence[Token], at: int) -> int:
    """The place of the bracket that closes one; the end if there is none."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place].token_type == TokenType.L_PAREN) - (tokens[place].token_type == TokenType.R_PAREN)
        if depth == 0:
            return place
    return len(tokens) - 1


def _word(token: Token, text: str) -> Token:
    return _like(token, TokenType.VAR, text)


def _like(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)
