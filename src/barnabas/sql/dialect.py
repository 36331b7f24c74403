"""The dialect: Postgres' words and literals with Spark SQL's functions and operators, read by sqlglot.

Strings are Postgres' (a backslash is a plain character unless the literal begins with E), because clients quote values by that rule. Names
may stand in double quotes or in backticks.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from barnabas import limits
from barnabas.sql import spark_functions
from barnabas.sql.interface import SqlError
from barnabas.sql.set_operations import with_plain_sets
from barnabas.sql.states import LIMIT_EXCEEDED, TOO_COMPLEX, syntax_error
from barnabas.sql.table_words import with_plain_windows

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns of statements that get an error of their own here
IDENTITY_OPTIONS = "identity_options"  # the mark of an identity column
STREAM = "stream"  # the mark of a table that is read as a stream
_BEFORE_STREAMS = frozenset((TokenType.FROM, TokenType.JOIN, TokenType.COMMA, TokenType.L_PAREN, TokenType.USING))
_OPEN = frozenset((TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE))
_CLOSE = frozenset((TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END))


class Barnabas(Postgres):
    """The dialect, for sqlglot."""

    TIME_MAPPING = {  # noqa: RUF012 - sqlglot declares it as a plain attribute
        **Postgres.TIME_MAPPING, "AM": "%p", "PM": "%p", "am": "%p", "pm": "%p", "Mon": "%b", "Month": "%B", "Dy": "%a", "Day": "%A",
        "HH": "%I", "hh": "%I", "hh12": "%I", "hh24": "%H", "mi": "%M", "ss": "%S", "MS": "%g", "ms": "%g", "US": "%f", "us": "%f",
        "mm": "%m", "dd": "%d", "ddd": "%j", "yyyy": "%Y", "yy": "%y", "mon": "%b", "month": "%B",
    }  # fmt: skip

    class Tokenizer(Postgres.Tokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        NUMERIC_LITERALS = Spark.Tokenizer.NUMERIC_LITERALS  # 1L, 2S, 3Y, 1.5D, 1.5BD
        COMMANDS: ClassVar[set[TokenType]] = set()  # every statement is read as words
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **Postgres.Tokenizer.KEYWORDS, "DIV": TokenType.DIV, "RLIKE": TokenType.RLIKE, "STREAM": TokenType.STREAM,
            "BYTES": TokenType.VARBINARY,
        }  # fmt: skip

    class Parser(PostgresParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {**PostgresParser.FUNCTIONS, **spark_functions.FUNCTIONS}
        FUNC_TOKENS: ClassVar[set[TokenType]] = {*PostgresParser.FUNC_TOKENS, TokenType.STREAM}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            **PostgresParser.FUNCTION_PARSERS, "SUBSTR": lambda self: self._parse_called("SUBSTRING", "substr"),
            "DATE_PART": lambda self: self._parse_called("DATE_PART", "date_part"),
        }  # fmt: skip
        FACTOR: ClassVar[dict[Any, Any]] = {**PostgresParser.FACTOR, TokenType.DIV: exp.IntDiv}

        def _parse_generated_as_identity(self) -> Any:
            """`GENERATED … AS IDENTITY (options)`: the options are kept as they are written, for the reader of sequences."""
            place = self._index
            words = [str(each.text).upper() for each in self._tokens[place : place + 5]]
            length = (
                3 if words[:3] == ["ALWAYS", "AS", "IDENTITY"] else 4 if words[:4] == ["BY", "DEFAULT", "AS", "IDENTITY"] else 0
            )
            if not length:
                return super()._parse_generated_as_identity()
            made = exp.GeneratedAsIdentityColumnConstraint(this=length == 3)
            self._advance(length)
            if self._match(TokenType.L_PAREN):
                start = self._index
                while self._curr and self._curr.token_type != TokenType.R_PAREN:
                    self._advance()
                made.meta[IDENTITY_OPTIONS] = Statement(self.sql, self._tokens[start : self._index])
                self._match_r_paren()
            return made

        def _parse_column_constraint(self) -> Any:
            """Not Flink's METADATA, which names a column of the record."""
            if self._curr and self._curr.text.upper() == "METADATA":
                raise SqlError(
                    "0A000", "METADATA columns are not supported", position=int(self._curr.start) + 1,
                    hint="each table has the columns _timestamp, _partition, _offset, _key and _headers",
                )  # fmt: skip
            return super()._parse_column_constraint()

        def _parse_unnamed_constraint(self, constraints: Any = None) -> Any:
            """Also `WATERMARK FOR column AS expression`. A column may have the name `watermark`."""
            if self._curr and self._curr.text.upper() == "WATERMARK" and self._next and self._next.text.upper() == "FOR":
                self._advance(2)
                time = self._parse_field(any_token=True)
                if not self._match(TokenType.ALIAS):
                    self.raise_error("AS follows the column of a WATERMARK")
                return exp.WatermarkColumnConstraint(this=time, expression=self._parse_disjunction())
            return super()._parse_unnamed_constraint(constraints)

        def _parse_called(self, name: str, written: str) -> Any:
            """A function with a syntax of its own, and the name that it has in the statement."""
            made = PostgresParser.FUNCTION_PARSERS[name](self)
            made.meta[WRITTEN] = written
            return made

        def _parse_stream(self) -> Any:
            """`STREAM t` and `STREAM(t)` in FROM: the table with a mark. A table may have the name `stream`."""
            place = self._index
            is_word = (
                self._curr.token_type == TokenType.STREAM and place and self._tokens[place - 1].token_type in _BEFORE_STREAMS
            )
            if not is_word or self._next.token_type not in (TokenType.L_PAREN, *(self.TABLE_ALIAS_TOKENS - {TokenType.SET})):
                return None
            self._advance()
            has_brackets = self._match(TokenType.L_PAREN)
            table = self._try_parse(self._parse_table_parts)
            if (
                table is None
                or not isinstance(table.this, exp.Identifier)
                or (has_brackets and not self._match(TokenType.R_PAREN))
            ):
                self._retreat(place)
                return None
            table.set("alias", self._parse_table_alias(alias_tokens=self.TABLE_ALIAS_TOKENS))
            table.set("sample", self._parse_table_sample())
            table.meta[STREAM] = True
            return table

        def _warn_unsupported(self) -> None:
            """Nothing: the statement gets an error, and its text belongs into no log."""


class SparkOrder(Barnabas):
    """The dialect with Spark's order: nulls are smaller than everything."""

    NULL_ORDERING = "nulls_are_small"


_DIALECT, _SPARK_ORDER = Barnabas(), SparkOrder()


class Statement(NamedTuple):
    """One statement.

    Args:
        text: as it was sent.
        tokens: of it; positions are in `text`.
    """

    text: str
    tokens: Sequence[Token]

    def word(self, index: int) -> str:
        """A token in capitals, a name or a keyword; empty for others and behind the end."""
        if index >= len(self.tokens) or self.tokens[index].token_type in (TokenType.STRING, TokenType.NUMBER):
            return ""
        return str(self.tokens[index].text).upper()

    def position(self, index: int) -> int:
        """Of a token, from 1 on."""
        if index >= len(self.tokens):
            return len(self.text) + 1
        return int(self.tokens[index].start) + 1

    def raw(self, start: int, end: int | None = None) -> str:
        """The text from one token up to, and without, another."""
        if start >= len(self.tokens):
            return ""
        stop = len(self.text) if end is None or end >= len(self.tokens) else self.tokens[end].start
        return self.text[self.tokens[start].start : stop].strip()


def tokens_of(text: str) -> list[Token]:
    """Raises SqlError: an open quote, or a text that is too large."""
    if len(text) > limits.MAX_SQL_CHARACTERS:
        raise SqlError(LIMIT_EXCEEDED, f"a statement of {len(text)} characters; allowed are {limits.MAX_SQL_CHARACTERS}")
    try:
        return list(_DIALECT.tokenize(_PARAMETER.sub(_marked, text) if "$" in text else text))
    except TokenError as error:
        raise syntax_error(_unfinished(text) or str(error).split("\n")[0]) from None


_PARAMETER = re.compile(
    r"""[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*` | --[^\n]* | /\*.*?\*/
    | (?<![\w$])\$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?P=tag)?\$ | (?<![\w$])\$(?P<number>\d+)""",
    re.DOTALL | re.VERBOSE,
)


def _marked(found: re.Match[str]) -> str:
    """`$1` as `@1`, which means the same: sqlglot takes the text between the signs of `$1,$2` for the name of a quotation."""
    return f"@{found['number']}" if found["number"] else found[0]


def _unfinished(text: str) -> str:
    return "unterminated quoted string or comment" if text else ""


def statement_of(text: str) -> Statement:
    """The only statement of a text, or one without tokens. Raises SqlError."""
    found = split(text)
    if len(found) > 1:
        raise syntax_error("cannot insert multiple commands into a prepared statement", found[1].position(0))
    return found[0] if found else Statement(text, ())


def split(text: str) -> list[Statement]:
    """The statements of a text. Raises SqlError."""
    found: list[Statement] = []
    pending: list[Token] = []
    for token in tokens_of(text):
        if token.token_type == TokenType.SEMICOLON:
            if pending:
                found.append(_checked(text, pending))
            pending = []
        else:
            pending.append(token)
    if pending:
        found.append(_checked(text, pending))
    return found


def _checked(text: str, tokens: list[Token]) -> Statement:
    if len(tokens) > limits.MAX_SQL_TOKENS:
        raise SqlError(LIMIT_EXCEEDED, f"a statement of {len(tokens)} words; allowed are {limits.MAX_SQL_TOKENS}")
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth > limits.MAX_SQL_DEPTH:
            raise SqlError(
                TOO_COMPLEX, f"more than {limits.MAX_SQL_DEPTH} brackets inside of each other", position=int(token.start) + 1
            )
    return Statement(text, tokens)


def parse(statement: Statement, *, spark_order: bool = False) -> Any:
    """The tree of a statement. Raises SqlError.

    Args:
        spark_order: whether nulls come first in an ORDER BY without NULLS, as in Spark, instead of last, as in Postgres.
    """
    return parse_tokens(statement.text, statement.tokens, spark_order=spark_order)


def parse_tokens(text: str, tokens: Sequence[Token], *, spark_order: bool = False) -> Any:
    """The tree of some tokens of a text. Raises SqlError."""
    try:
        parser = (_SPARK_ORDER if spark_order else _DIALECT).parser(error_level=sqlglot.ErrorLevel.IMMEDIATE)
        trees = parser.parse(_readable(tokens), text)
    except ParseError as error:
        raise _syntax(text, error) from None
    except RecursionError:
        raise SqlError(TOO_COMPLEX, "the statement has too many expressions inside of each other") from None
    except (SqlglotError, ValueError, AttributeError, TypeError, IndexError, KeyError) as error:
        raise syntax_error(
            f"the statement cannot be read: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        ) from None
    if len(trees) != 1 or trees[0] is None:
        raise syntax_error("the statement cannot be read")
    _remember_names(trees[0], text)
    _read_arrows(trees[0])
    return trees[0]


def parse_expression(text: str) -> Any:
    """The tree of an expression. Raises SqlError."""
    query = f"SELECT {text}"
    return parse_tokens(query, tokens_of(query)).expressions[0]


def _read_arrows(tree: Any) -> None:
    """In arguments, `a -> 'x'` is read as a lambda. One whose body begins with a literal and knows no `a` is a part of a document."""
    for node in list(tree.find_all(exp.Lambda)):
        names = [each.name.lower() for each in node.expressions]
        leaf: Any = node.this
        while isinstance(leaf, (exp.Binary, exp.Cast, exp.JSONExtract, exp.JSONExtractScalar)):
            leaf = leaf.this
        used = any(each.name.lower() in names for each in node.this.find_all(exp.Column, exp.Identifier))
        if len(names) != 1 or used or not isinstance(leaf, exp.Literal):
            continue
        part = exp.JSONExtract(this=exp.column(node.expressions[0].copy()), expression=leaf.copy(), only_json_types=True)
        if leaf is node.this:
            node.replace(part)
        else:
            leaf.replace(part)
            node.replace(node.this)


def _remember_names(tree: Any, text: str) -> None:
    """Keep each function's name as it was written, because it names the column: sqlglot has one class for several names."""
    for node in tree.find_all(exp.Func, exp.Mod):
        start, end = node.meta.get("start"), node.meta.get("end")
        if start is not None and end is not None and _WORD.fullmatch(text, start, end + 1):
            node.meta[WRITTEN] = text[start : end + 1].lower()


WRITTEN = "written"
OWN_NAME = "__own_"  # before the name of a user's function that sqlglot has too
_NO_CALLS = frozenset(
    ("INTO", "TABLE", "EXISTS", "VIEW", "FUNCTION", "WITH", "RECURSIVE", "UPDATE", "REFERENCES", "ON", "AS", "COPY", "JOIN")
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_ONE_UNIT = re.compile(r"\s*[+-]?\d+(\.\d+)?\s*[a-zA-Z]+\s*\Z")


def _readable(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with what sqlglot would read wrongly written in another way: intervals of several units, lists of oids,
    `ORDER BY x USING <`, casts of typed literals, and the functions `div` and `window`."""
    tokens = with_plain_sets(with_plain_windows(tokens))
    made: list[Token] = []
    for place, token in enumerate(tokens):
        before = made[-1] if made else None
        if before is not None and before.token_type == TokenType.INTERVAL and token.token_type == TokenType.STRING:
            unit = tokens[place + 1].text.upper() if place + 1 < len(tokens) else ""
            if not _ONE_UNIT.match(token.text) and unit not in _UNITS:
                made[-1:] = [token, _like(before, TokenType.DCOLON, "::"), before]
                continue
        if before is not None and before.token_type in _TYPED and token.token_type == TokenType.STRING:
            follows = tokens[place + 1].token_type if place + 1 < len(tokens) else None
            if follows == TokenType.DCOLON:  # `date '2026-01-31'::text` casts the date, and not its text
                made[-1:] = [_like(before, TokenType.L_PAREN, "("), before, token, _like(token, TokenType.R_PAREN, ")")]
                continue
        if _is_name(tokens, place, before):
            made.append(_like(token, TokenType.VAR, token.text))
            continue
        if token.token_type == TokenType.FROM and _is_empty_exists(made):
            made.append(_like(token, TokenType.NUMBER, "1"))  # EXISTS (SELECT FROM t)
        number = _number(tokens, place, before)
        if number is not None:
            made[-1 if token.token_type == TokenType.VAR else len(made) :] = [number]
            continue
        if token.token_type == TokenType.OBJECT_IDENTIFIER and place + 1 < len(tokens):
            is_list = tokens[place + 1].token_type == TokenType.L_BRACKET
            made.append(_like(token, TokenType.UINT, "uint") if is_list else token)
            continue
        if before is not None and before.token_type == TokenType.USING and token.token_type in _ORDERS:
            made[-1] = _like(before, *_ORDERS[token.token_type])
            continue
        made.append(token)
    return made


def _is_name(tokens: Sequence[Token], place: int, before: Token | None) -> bool:
    """Whether a word of the language is a name: the functions `div` and `window`, and a column `select`."""
    match tokens[place].token_type:
        case TokenType.DIV:
            return before is None or before.token_type in _BEFORE_OPERANDS
        case TokenType.WINDOW:
            return place + 1 < len(tokens) and tokens[place + 1].token_type in _BEHIND_NAMES
        case TokenType.SELECT:
            return _is_alias(tokens, place)
    return False


def _is_alias(tokens: Sequence[Token], place: int) -> bool:
    """Whether the word `select` is the name of an output: `x AS select`, `t.select`."""
    if place and tokens[place - 1].token_type == TokenType.DOT:
        return True
    if not place or tokens[place - 1].token_type != TokenType.ALIAS:
        return False
    follows = tokens[place + 1].token_type if place + 1 < len(tokens) else TokenType.FROM
    return follows in (TokenType.FROM, TokenType.COMMA, TokenType.R_PAREN)


def _is_empty_exists(made: Sequence[Token]) -> bool:
    """Whether the tokens end with `EXISTS (SELECT`."""
    kinds = [each.token_type for each in made[-3:]]
    return kinds == [TokenType.EXISTS, TokenType.L_PAREN, TokenType.SELECT]


def _number(tokens: Sequence[Token], place: int, before: Token | None) -> Token | None:
    """The number whose last token stands here: `1_000`, `0x1F`, `0o17`."""
    token = tokens[place]
    if token.token_type == TokenType.HEX_STRING and token.end - token.start == len(token.text) + 1:  # X'1F' is of bytes
        return _like(token, TokenType.NUMBER, str(int(token.text, 16)))
    if (
        token.token_type != TokenType.VAR
        or before is None
        or before.token_type != TokenType.NUMBER
        or before.end + 1 != token.start
    ):
        return None
    if re.fullmatch(r"(_\d+)+", token.text):
        return _like(before, TokenType.NUMBER, before.text + token.text.replace("_", ""))
    if before.text == "0" and re.fullmatch(r"[oO](_?[0-7]+)+", token.text):
        return _like(before, TokenType.NUMBER, str(int(token.text[1:].replace("_", ""), 8)))
    return None


_TYPED = frozenset(
    (TokenType.DATE, TokenType.TIME, TokenType.TIMESTAMP, TokenType.TIMESTAMPTZ, TokenType.INT, TokenType.BIGINT, TokenType.SMALLINT,
     TokenType.FLOAT, TokenType.DOUBLE, TokenType.DECIMAL, TokenType.BOOLEAN, TokenType.TEXT, TokenType.VARCHAR, TokenType.UUID,
     TokenType.JSON, TokenType.JSONB, TokenType.VARBINARY)
)  # fmt: skip
_BEHIND_NAMES = (TokenType.L_PAREN, TokenType.DOT)
_BEFORE_OPERANDS = frozenset(
    (TokenType.SELECT, TokenType.COMMA, TokenType.L_PAREN, TokenType.WHERE, TokenType.PLUS, TokenType.EQ)
)
_ORDERS = {TokenType.LT: (TokenType.ASC, "asc"), TokenType.GT: (TokenType.DESC, "desc")}
_UNITS = frozenset(
    ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "WEEK", "YEARS", "MONTHS", "DAYS", "HOURS", "MINUTES", "SECONDS")
)


def with_own_functions(statement: Statement, names: Collection[str]) -> Statement:
    """The statement with other names for calls of users' functions that sqlglot would take for its own.

    Args:
        names: of users' functions, in lower case.
    """
    wanted = {name for name in names if name.upper() in _KNOWN_CALLS or name.upper() in Barnabas.Tokenizer.KEYWORDS}
    if not wanted:
        return statement
    made = list(statement.tokens)
    for place, token in enumerate(made[:-1]):
        is_call = token.text.lower() in wanted and made[place + 1].token_type == TokenType.L_PAREN
        if (
            is_call
            and token.token_type != TokenType.STRING
            and statement.word(place - 1 if place else len(made)) not in _NO_CALLS
        ):
            made[place] = _like(token, TokenType.VAR, OWN_NAME + token.text.lower())
    return Statement(statement.text, made)


def has_syntax(name: str) -> bool:
    """Whether calls of a function have a syntax of their own, such as `extract(year FROM x)`, or its name is a word of the language."""
    word = name.upper()
    kind = Barnabas.Tokenizer.KEYWORDS.get(word)
    is_word = kind is not None and kind not in Barnabas.Parser.FUNC_TOKENS
    return (
        is_word
        or word in _OWN_SYNTAX
        or word in Barnabas.Parser.FUNCTION_PARSERS
        or word in Barnabas.Parser.NO_PAREN_FUNCTION_PARSERS
    )


_OWN_SYNTAX = frozenset(("IF", "ROW", "INTERVAL", "ARRAY", "MAP", "STRUCT", "COALESCE", "NULLIF", "UNNEST", "EXPLODE", "WINDOW"))
_KNOWN_CALLS = frozenset((*Barnabas.Parser.FUNCTIONS, *Barnabas.Parser.FUNCTION_PARSERS))


def _like(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)


def _syntax(text: str, error: ParseError) -> SqlError:
    known = error.errors[0] if error.errors else {}
    line, column, word = known.get("line"), known.get("col"), known.get("highlight") or ""
    if not line:
        return syntax_error(str(error).split("\n")[0])
    lines = text.split("\n")
    end = sum(len(each) + 1 for each in lines[: line - 1]) + (column or 1)
    if end >= len(text.rstrip()) and str(known.get("description", "")).startswith("Required keyword"):
        return syntax_error("syntax error at end of input", len(text) + 1)
    return syntax_error(f'syntax error at or near "{word}"', max(1, end - len(word) + 1))


def words_of(node: Any) -> str:
    """The words of a clause, from sqlglot's name for it: ADD CONSTRAINT of `AddConstraint`."""
    name = type(node).__name__.removesuffix("ColumnConstraint").removesuffix("Property")
    return _CLAUSES.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper()


_CLAUSES = {"SchemaComment": "COMMENT", "Reference": "REFERENCES", "Computed": "GENERATED ALWAYS AS", "AlterRename": "RENAME"}


def to_duckdb(tree: Any) -> str:
    """DuckDB's text of a query. Raises SqlError."""
    try:
        return str(tree.sql("duckdb", unsupported_level=sqlglot.ErrorLevel.IGNORE, comments=False))
    except RecursionError:
        raise SqlError(TOO_COMPLEX, "the statement has too many expressions inside of each other") from None
    except (SqlglotError, ValueError, AttributeError, TypeError, IndexError, KeyError) as error:
        raise syntax_error(f"the statement cannot be run: {error}") from None
