"""Reads CREATE FUNCTION: the words of Postgres, and those that users of Databricks, Snowflake and RisingWave know. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from barnabas import limits
from barnabas.functions.body import check
from barnabas.functions.definition import ARROW, PANDAS, PYTHON, ROW, SQL, Argument, Function
from barnabas.sql.dialect import Statement, parse, statement_of
from barnabas.sql.duck.types import KIND, declared_field, duckdb_of, postgres_of
from barnabas.sql.interface import SqlError
from barnabas.sql.states import INVALID_FUNCTION, LIMIT_EXCEEDED, not_supported, syntax_error

FORM = "CREATE [OR REPLACE] FUNCTION f(a bigint, b text) RETURNS double precision LANGUAGE PYTHON AS $$ … $$"
LANGUAGES = {"PYTHON": PYTHON, "PLPYTHON3U": PYTHON, "PLPYTHONU": PYTHON, "PYTHON3": PYTHON, "SQL": SQL}
STYLES = {"ROW": ROW, "SCALAR": ROW, "ARROW": ARROW, "PANDAS": PANDAS}
_TAGS = {b"json": ("JSON", "jsonb"), b"uuid": ("UUID", "uuid")}
_OPEN, _CLOSE = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.LT), (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.GT)
_TEXTS = (TokenType.STRING, TokenType.HEREDOC_STRING, TokenType.RAW_STRING, TokenType.BYTE_STRING, TokenType.UNICODE_STRING)


class Reader:
    """The words of a statement, one after another.

    Args:
        at: of the first word.
    """

    def __init__(self, statement: Statement, at: int) -> None:
        self.statement, self.at = statement, at

    @property
    def is_done(self) -> bool:
        return self.at >= len(self.statement.tokens)

    @property
    def word(self) -> str:
        return self.statement.word(self.at)

    def takes(self, *words: str) -> bool:
        """Whether these words come next; they are read then."""
        if [self.statement.word(self.at + place) for place in range(len(words))] != list(words):
            return False
        self.at += len(words)
        return True

    def fault(self) -> SqlError:
        """A syntax error here."""
        if self.is_done:
            return syntax_error("syntax error at end of input", self.statement.position(self.at), f"the statement is {FORM}")
        text = str(self.statement.tokens[self.at].text)[:40]
        return syntax_error(f'syntax error at or near "{text}"', self.statement.position(self.at), f"the statement is {FORM}")

    def needs(self, *words: str) -> None:
        """Read these words. Raises SqlError."""
        if not self.takes(*words):
            raise self.fault()

    def name(self) -> str:
        """A name, without the schema `public`. Raises SqlError."""
        if self.is_done or self.statement.tokens[self.at].token_type in (*_TEXTS, TokenType.NUMBER, *_OPEN, *_CLOSE):
            raise self.fault()
        token = self.statement.tokens[self.at]
        self.at += 1
        text = str(token.text)
        if self.takes(".") and text.lower() == "public":
            return self.name()
        return text if token.token_type == TokenType.IDENTIFIER else text.lower()

    def text(self) -> str:
        """A literal. Raises SqlError."""
        if self.is_done or self.statement.tokens[self.at].token_type not in _TEXTS:
            raise self.fault()
        self.at += 1
        return str(self.statement.tokens[self.at - 1].text)

    def enclosed(self) -> list[tuple[int, int]]:
        """The parts of a list in brackets, as places of words. Raises SqlError."""
        if self.is_done or self.statement.tokens[self.at].token_type != TokenType.L_PAREN:
            raise self.fault()
        self.at += 1
        parts: list[tuple[int, int]] = []
        depth, start = 0, self.at
        while not self.is_done:
            kind = self.statement.tokens[self.at].token_type
            if depth == 0 and kind in (TokenType.COMMA, TokenType.R_PAREN):
                if self.at > start or parts or kind == TokenType.COMMA:
                    parts.append((start, self.at))
                self.at += 1
                start = self.at
                if kind == TokenType.R_PAREN:
                    return parts
                continue
            depth += (kind in _OPEN) - (kind in _CLOSE)
            self.at += 1
        raise self.fault()

    def until(self, is_end: Callable[[str], bool]) -> tuple[int, int]:
        """The words up to one outside of brackets that ends them."""
        start, depth = self.at, 0
        while not self.is_done:
            kind = self.statement.tokens[self.at].token_type
            if depth == 0 and self.at > start and is_end(self.word):
                break
            depth += (kind in _OPEN) - (kind in _CLOSE)
            self.at += 1
        return start, self.at


_CLAUSES = frozenset((
    "LANGUAGE", "AS", "IMMUTABLE", "STABLE", "VOLATILE", "STRICT", "CALLED", "RETURNS", "PARAMETER", "HANDLER", "RUNTIME_VERSION",
    "PARALLEL", "COST", "ROWS", "SECURITY", "DETERMINISTIC", "NOT", "COMMENT", "RETURN", "WITH", "VECTORIZED", "LEAKPROOF", "PACKAGES",
    "BEGIN", "SET", "EXTERNAL", "USING", "WINDOW", "ENVIRONMENT", "CONTAINS", "IMPORTS", "NO",
))  # fmt: skip


def function_of(reader: Reader) -> Function:
    """The function of the words behind CREATE FUNCTION. Raises SqlError, BadFunction."""
    name = reader.name()
    if len(name) > limits.MAX_SQL_NAME:
        raise SqlError("42622", f"the name of a function has at most {limits.MAX_SQL_NAME} characters")
    arguments = tuple(argument_of(reader.statement, *part) for part in reader.enclosed())
    made: dict[str, Any] = {"name": name, "arguments": arguments, "returns": None, "columns": ()}
    if not reader.takes("RETURNS"):
        raise reader.fault()
    _read_result(reader, made)
    while not reader.is_done:
        _read_clause(reader, made)
    return _finished(reader, made)


def _finished(reader: Reader, made: dict[str, Any]) -> Function:
    language = made.pop("language", SQL)
    if "body" not in made:
        raise SqlError(INVALID_FUNCTION, "no function body specified", hint=f"the statement is {FORM}")
    if len(made["body"]) > limits.MAX_FUNCTION_CHARACTERS:
        raise SqlError(
            LIMIT_EXCEEDED,
            f"the body of a function has at most {limits.MAX_FUNCTION_CHARACTERS} characters; this one has {len(made['body'])}",
        )
    most = max(len(made["arguments"]), len(made["columns"]))
    if most > limits.MAX_FUNCTION_ARGUMENTS:
        raise SqlError("54023", f"functions cannot have more than {limits.MAX_FUNCTION_ARGUMENTS} arguments")
    _check_names(made["arguments"], "argument")
    _check_names(made["columns"], "column")
    if language == SQL:
        if made.get("handler") or made.get("style", ROW) != ROW:
            raise SqlError(INVALID_FUNCTION, "HANDLER and PARAMETER STYLE are for functions in Python")
        return Function(language=SQL, **made)
    if made["columns"] and made.get("style", ROW) != ROW:
        raise not_supported("a vectorised function that gives rows is not supported", hint="leave PARAMETER STYLE out")
    return check(Function(language=PYTHON, **made))


def _check_names(arguments: Sequence[Argument], what: str) -> None:
    names = [each.name.lower() for each in arguments if each.name]
    twice = next((each for place, each in enumerate(names) if each in names[:place]), None)
    if twice is not None:
        raise SqlError(INVALID_FUNCTION, f'{what} name "{twice}" used more than once')
    first = next((place for place, each in enumerate(arguments) if each.default is not None), len(arguments))
    if any(each.default is None for each in arguments[first:]):
        raise SqlError(INVALID_FUNCTION, "input parameters after one with a default value must also have defaults")


def _read_result(reader: Reader, made: dict[str, Any]) -> None:
    if reader.word == "TABLE" and reader.takes("TABLE"):
        made["columns"] = tuple(argument_of(reader.statement, *part) for part in reader.enclosed())
        if not made["columns"] or not all(each.name for each in made["columns"]):
            raise SqlError(INVALID_FUNCTION, "RETURNS TABLE needs the names and types of columns")
        return
    is_set = reader.takes("SETOF")
    found = argument_of(reader.statement, *reader.until(lambda word: word in _CLAUSES), with_name=False)
    if is_set:
        made["columns"] = (Argument(made["name"], found.kind, found.shown),)
    else:
        made["returns"] = found


def _read_clause(reader: Reader, made: dict[str, Any]) -> None:
    if reader.takes("LANGUAGE"):
        word = reader.word or reader.text().upper()
        reader.at += bool(reader.word)
        if word not in LANGUAGES:
            raise SqlError("42704", f'language "{word.lower()}" does not exist', hint="there are PYTHON and SQL")
        made["language"] = LANGUAGES[word]
    elif reader.takes("AS"):
        made["body"] = reader.text()
    elif reader.takes("RETURN"):
        start, end = reader.until(lambda word: word in ("LANGUAGE", "IMMUTABLE", "STABLE", "VOLATILE", "STRICT"))
        made["body"] = _returned(reader.statement, start, end)
    elif reader.takes("RETURNS", "NULL", "ON", "NULL", "INPUT") or reader.takes("STRICT"):
        made["is_strict"] = True
    elif reader.takes("CALLED", "ON", "NULL", "INPUT"):
        made["is_strict"] = False
    elif reader.takes("PARAMETER", "STYLE"):
        if reader.word not in STYLES:
            raise not_supported(f"PARAMETER STYLE {reader.word} is not supported", hint=f"there are {', '.join(STYLES)}")
        made["style"] = STYLES[reader.word]
        reader.at += 1
    elif reader.takes("VECTORIZED"):
        made["style"] = ARROW
    elif reader.takes("HANDLER"):
        reader.takes("=")
        made["handler"] = reader.text()
    elif not _read_volatility(reader, made) and not _skipped(reader):
        raise reader.fault()


def _returned(statement: Statement, start: int, end: int) -> str:
    """The body of a function with RETURN: an expression, or a query."""
    text = statement.raw(start, end)
    return text if statement.word(start) in ("SELECT", "WITH", "VALUES", "TABLE") else f"SELECT {text}"


def _read_volatility(reader: Reader, made: dict[str, Any]) -> bool:
    for word in ("IMMUTABLE", "STABLE", "VOLATILE"):
        if reader.takes(word):
            made["volatility"] = word.lower()
            return True
    if reader.takes("NOT", "DETERMINISTIC"):
        made["volatility"] = "volatile"
        return True
    if reader.takes("DETERMINISTIC"):
        made["volatility"] = "immutable"
        return True
    return False


def _skipped(reader: Reader) -> bool:
    """Clauses without a meaning here: the versions of Python and of packages are those of the server."""
    if reader.takes("NOT", "LEAKPROOF") or reader.takes("LEAKPROOF") or reader.takes("SECURITY", "INVOKER"):
        return True
    if reader.takes("CONTAINS", "SQL") or reader.takes("NO", "SQL"):
        return True
    for word in ("PARALLEL", "COST", "ROWS"):
        if reader.takes(word):
            reader.at += 1
            return True
    for word in ("RUNTIME_VERSION", "COMMENT"):
        if reader.takes(word):
            reader.takes("=")
            reader.text()
            return True
    if reader.takes("SECURITY", "DEFINER"):
        raise not_supported("SECURITY DEFINER is not supported", hint="a function acts with the rights of its caller")
    if reader.word in ("BEGIN", "USING", "PACKAGES", "IMPORTS", "ENVIRONMENT", "SET", "WINDOW", "WITH"):
        raise not_supported(
            f"CREATE FUNCTION … {reader.word} is not supported", reader.statement.position(reader.at), f"the statement is {FORM}"
        )
    return False


def argument_of(statement: Statement, start: int, end: int, *, with_name: bool = True) -> Argument:
    """An argument: `[IN] [name] type [DEFAULT expression]`. Raises SqlError."""
    if statement.word(start) == "IN" and end > start + 1:
        start += 1
    if statement.word(start) in ("OUT", "INOUT", "VARIADIC") and end > start + 1:
        raise not_supported(
            f"{statement.word(start)} arguments are not supported",
            statement.position(start),
            "RETURNS TABLE gives several columns",
        )
    default, stop = None, end
    for at in range(start, end):
        if statement.word(at) in ("DEFAULT", "="):
            default, stop = statement.raw(at + 1, end), at
            break
    if stop == start:
        raise syntax_error("the type of an argument is missing", statement.position(start))
    field = _type(statement, start, stop)
    if field is not None:
        return _made("", field, default)
    field = _type(statement, start + 1, stop) if with_name and stop > start + 1 else None
    if field is None:
        _raise_type(statement, start + (with_name and stop > start + 1), stop)
    token = statement.tokens[start]
    name = str(token.text)
    assert field is not None
    return _made(name if token.token_type == TokenType.IDENTIFIER else name.lower(), field, default)


def _type(statement: Statement, start: int, end: int) -> pa.Field[Any] | None:
    try:
        return declared_field("", _tree_of_type(statement.raw(start, end)))
    except SqlError:
        return None


def _raise_type(statement: Statement, start: int, end: int) -> None:
    try:
        declared_field("", _tree_of_type(statement.raw(start, end)))
    except SqlError as error:
        error.position = statement.position(start)
        raise


def _tree_of_type(text: str) -> Any:
    found = parse(statement_of(f"SELECT CAST(NULL AS {text})"))
    cast = found.expressions[0] if isinstance(found, exp.Select) and len(found.expressions) == 1 else None
    if not isinstance(cast, exp.Cast) or not isinstance(cast.this, exp.Null):
        raise syntax_error(f'"{text[:60]}" is no type')
    return cast.to


def _made(name: str, field: pa.Field[Any], default: str | None) -> Argument:
    kind, shown = _TAGS.get((field.metadata or {}).get(KIND, b""), (duckdb_of(field.type), postgres_of(field.type)))
    return Argument(name, kind, shown, default)
