"""SQLSTATEs, as Postgres has them, and how other errors become `SqlError`s.

An error of DuckDB or of the cluster is translated once, here. Its text names what was wrong; DuckDB's own excerpt of the statement is cut,
because it is of the text that DuckDB got.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import duckdb

from barnabas.client.errors import ClientError, LoginFailed, PartitionError, ResourceError, UnsupportedRequest
from barnabas.columnar.encode import RecordTooLarge
from barnabas.error_codes import ErrorCode
from barnabas.errors import BarnabasError, ConfigError, KafkaError
from barnabas.functions.definition import CallFailed, FunctionError
from barnabas.functions.duck import IN_PYTHON
from barnabas.schemas.registry_client import RegistryError, RegistryUnreachable
from barnabas.sql.duck.enums import ENUM_MARK
from barnabas.sql.interface import SqlError
from barnabas.tables.errors import BadRecord, TableError

SYNTAX_ERROR = "42601"
UNDEFINED_TABLE, UNDEFINED_COLUMN, UNDEFINED_FUNCTION, UNDEFINED_OBJECT = "42P01", "42703", "42883", "42704"
UNDEFINED_PARAMETER, INDETERMINATE_TYPE = "42P02", "42P18"
AMBIGUOUS_COLUMN, GROUPING_ERROR, TYPE_MISMATCH, DUPLICATE_COLUMN, DUPLICATE_ALIAS = "42702", "42803", "42804", "42701", "42712"
DUPLICATE_TABLE, DUPLICATE_PREPARED, INVALID_TABLE, WRONG_OBJECT = "42P07", "42P05", "42P16", "42809"
INSUFFICIENT_PRIVILEGE, DUPLICATE_OBJECT = "42501", "42710"
TOO_COMPLEX, LIMIT_EXCEEDED = "54001", "54000"
NOT_SUPPORTED = "0A000"
INVALID_TEXT, OUT_OF_RANGE, DIVISION_BY_ZERO, INVALID_DATETIME, INVALID_PARAMETER = "22P02", "22003", "22012", "22007", "22023"
TOO_LONG = "22001"
BAD_COPY = "22P04"
CARDINALITY = "21000"
SEQUENCE_LIMIT, NO_CURRENT_NUMBER, GENERATED_ALWAYS, DEPENDENT = "2200H", "55000", "428C9", "2BP01"
NOT_NULL, UNIQUE, CHECK = "23502", "23505", "23514"
DATA_EXCEPTION, DATA_CORRUPTED = "22000", "XX001"
IN_FAILED_TRANSACTION, ACTIVE_TRANSACTION, NO_TRANSACTION = "25P02", "25001", "25P01"
READ_ONLY, SERIALIZATION_FAILURE = "25006", "40001"
DEADLOCK, LOCK_NOT_AVAILABLE = "40P01", "55P03"
CANCELLED, TOO_MANY, OUT_OF_MEMORY, DISK_FULL, ADMIN_SHUTDOWN = "57014", "53300", "53200", "53100", "57P01"
UNKNOWN_OUTCOME = "08007"
CONNECTION_FAILURE, INVALID_AUTHORIZATION, INVALID_PREPARED = "08006", "28000", "26000"
INTERNAL, WRONG_COUNT = "XX000", "08P01"
FUNCTION_FAILED, INVALID_FUNCTION, DUPLICATE_FUNCTION = "38000", "42P13", "42723"

_EXCERPT = re.compile(r"\n+LINE \d+:.*\Z", re.DOTALL)
_PREFIX = re.compile(r"\A(?:[A-Z][\w-]*(?: [a-z]\w*| [A-Z]\w*)*) Error: ")
_OF_FUNCTION = re.compile(rf"\A{IN_PYTHON}")
_NAMED = re.compile(r'(?:column|name|Table|alias) "?([^"\s]+)"?', re.IGNORECASE)
_NO_NUMBER = re.compile(r"\ACould not convert string '(.*)' to ([A-Z]\w*)(.*)\Z", re.DOTALL)
_NO_LABEL = re.compile(
    r"Could not convert string '(.*?)' to ENUM\(.*'" + ENUM_MARK + r"\d+ \d+ ([^']*)'\)", re.DOTALL
)  # the last label of an ENUM names its type
_LABELS = re.compile(rf"ENUM\((?:'(?:[^']|'')*', )*'{ENUM_MARK}\d+ \d+ ([^']*)'\)")
_TYPES = {
    "BOOL": "boolean", "INT8": "smallint", "INT16": "smallint", "INT32": "integer", "INT64": "bigint", "FLOAT": "real",
    "DOUBLE": "double precision",
}  # fmt: skip
_BINDER: Sequence[tuple[str, str]] = (
    (r"Referenced column|does not have a column|not found in FROM clause|Values list .* does not have", UNDEFINED_COLUMN),
    (r"[Aa]mbiguous", AMBIGUOUS_COLUMN),
    (
        r"must appear in the GROUP BY|aggregate function calls cannot be nested|cannot contain aggregates|GROUP BY clause",
        GROUPING_ERROR,
    ),
    (r"No function matches", UNDEFINED_FUNCTION),
    (r"Referenced table", UNDEFINED_TABLE),
    (r"[Dd]uplicate alias", DUPLICATE_ALIAS),
    (r"Cannot (compare|mix|cast|combine)|[Tt]ype mismatch|could not be cast", TYPE_MISMATCH),
    (r"Conversion Error|Could not convert", INVALID_TEXT),
    (r"not supported|not implemented", NOT_SUPPORTED),
)
_CONVERSION: Sequence[tuple[str, str]] = (
    (r"out of range|[Oo]verflow|Could not cast value .* to DECIMAL", OUT_OF_RANGE),
    (r"date|time|interval", INVALID_DATETIME),
)

_KINDS: dict[str, tuple[Sequence[tuple[str, str]], str]] = {
    "out of memory": ([("max_temp_directory_size", DISK_FULL)], OUT_OF_MEMORY),
    "binder": (_BINDER, SYNTAX_ERROR),
    "catalog": ([("Function", UNDEFINED_FUNCTION), ("Type", UNDEFINED_OBJECT)], UNDEFINED_TABLE),
    "parser": ([("depth", TOO_COMPLEX)], SYNTAX_ERROR),
    "conversion": (_CONVERSION, INVALID_TEXT),
    "out of range": ((), OUT_OF_RANGE),
    "constraint": ([("NOT NULL", NOT_NULL)], UNIQUE),
    "permission": ((), INSUFFICIENT_PRIVILEGE),
    "not implemented": ((), NOT_SUPPORTED),
    "invalid input": ([("More than one row", CARDINALITY), *_CONVERSION], INVALID_PARAMETER),
    "invalid type": (_CONVERSION, INVALID_PARAMETER),
}


def syntax_error(message: str, position: int | None = None, hint: str | None = None) -> SqlError:
    return SqlError(SYNTAX_ERROR, message, position=position, hint=hint)


def not_supported(message: str, position: int | None = None, hint: str | None = None) -> SqlError:
    """The dialect lacks this; the hint says what works."""
    return SqlError(NOT_SUPPORTED, message, position=position, hint=hint)


def of_duckdb(error: Exception, text: str = "") -> SqlError:
    """The error of a query.

    Args:
        text: of the statement as the client sent it; the fault's position in it is looked for by its name.
    """
    whole = str(error)
    label = _NO_LABEL.search(whole)
    if label is not None:
        return SqlError(INVALID_TEXT, f'invalid input value for enum {label[2].strip()}: "{label[1]}"')
    whole = _LABELS.sub(lambda found: found[1].strip(), whole)
    message = _EXCERPT.sub("", whole).strip()
    kind = message.split(" Error:")[0]
    message = _OF_FUNCTION.sub("", _PREFIX.sub("", message))
    state = _state(kind, error, message)
    first, *more = message.split("\n")
    hints = (line.strip() for line in more if line.startswith(("Did you mean", "Candidate bindings")))
    hint = next((each for each in hints if '"__' not in each), None)  # names of our own begin so
    if state == UNDEFINED_COLUMN:
        first, position = _column(first, text)
        return SqlError(state, first, position=position, hint=hint)
    if state == UNDEFINED_TABLE and (found := re.search(r'Referenced table "([^"]+)" not found', first)):
        return SqlError(
            state, f'missing FROM-clause entry for table "{found[1]}"', position=position_of(text, found[1]), hint=hint
        )
    if found := _NO_NUMBER.search(first):
        first = f'invalid input syntax for type {_TYPES.get(found[2], found[2].lower())}: "{found[1]}"{found[3]}'
    if state == UNDEFINED_FUNCTION:
        return SqlError(state, _function(first), position=position_of(text, _named(first)), hint=hint)
    if state == DIVISION_BY_ZERO:
        return SqlError(state, "division by zero")
    if state in (OUT_OF_MEMORY, DISK_FULL):
        return SqlError(
            state, "the query needs more memory than it may have", detail=first, hint="filter earlier, or ask for fewer rows"
        )
    if state == CANCELLED:
        return SqlError(state, "canceling statement due to user request")
    return SqlError(state, first, hint=hint)


def _state(kind: str, error: Exception, message: str) -> str:
    if "Division by zero" in message:
        return DIVISION_BY_ZERO
    if isinstance(error, duckdb.InterruptException) or kind == "INTERRUPT":
        return CANCELLED
    rules, default = _KINDS.get(kind.lower(), ((), INTERNAL))
    return _matched(rules, message, default)


def _matched(rules: Sequence[tuple[str, str]], message: str, default: str) -> str:
    return next((state for pattern, state in rules if re.search(pattern, message)), default)


def _named(message: str) -> str:
    found = re.search(r"name '?([\w.]+)", message) or re.search(r"'(\w+)\(", message) or _NAMED.search(message)
    return found[1] if found else ""


def _column(message: str, text: str) -> tuple[str, int | None]:
    found = re.search(r'[Rr]eferenced column "([^"]+)"', message) or re.search(r'column named "([^"]+)"', message)
    if found is None:
        return message, None
    name = found[1]
    return f'column "{name}" does not exist', position_of(text, name)


def _function(message: str) -> str:
    found = re.search(r"Function with name (\S+) does not exist", message)
    if found:
        return f"function {found[1]} does not exist"
    found = re.search(r"'(.*)'", message)
    return f"function {found[1]} does not exist" if found else message


def position_of(text: str, name: str) -> int | None:
    """Where a name is first in a statement, from 1 on."""
    if not name:
        return None
    found = re.search(rf"(?<![\w']){re.escape(name)}(?![\w'])", text, re.IGNORECASE)
    return found.start() + 1 if found else None


def of_failure(error: BarnabasError) -> SqlError:
    """The error of the cluster or of a table."""
    if isinstance(error, SqlError):
        return error
    if isinstance(error, FunctionError):
        return SqlError(
            FUNCTION_FAILED if isinstance(error, CallFailed) else INVALID_FUNCTION, error.message, detail=error.detail
        )
    if isinstance(error, RecordTooLarge):
        return SqlError(LIMIT_EXCEEDED, str(error))
    if isinstance(error, LoginFailed):
        return SqlError(INVALID_AUTHORIZATION, str(error))
    if isinstance(error, (PartitionError, ResourceError, KafkaError)):
        return SqlError(_STATES_OF_CODES.get(error.code, CONNECTION_FAILURE), str(error))
    if isinstance(error, BadRecord):
        return SqlError(DATA_CORRUPTED, str(error))
    if isinstance(error, TableError):
        return SqlError(UNDEFINED_TABLE if "no topic" in str(error) else DATA_EXCEPTION, str(error))
    if isinstance(error, ConfigError):
        return SqlError(INVALID_PARAMETER, str(error))
    if isinstance(error, (ClientError, RegistryError, RegistryUnreachable)):
        return SqlError(CONNECTION_FAILURE, str(error))
    return SqlError(INTERNAL, str(error))


def unknown_outcome(error: ClientError, what: str) -> SqlError:
    """The error of a write whose answer was lost.

    Args:
        what: may have happened, such as "the rows were written".
    """
    if isinstance(error, (LoginFailed, UnsupportedRequest)):  # the request was never sent
        return of_failure(error)
    return SqlError(UNKNOWN_OUTCOME, f"the cluster gave no answer, so nobody knows whether {what}", detail=str(error))


_STATES_OF_CODES = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: INSUFFICIENT_PRIVILEGE,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: INSUFFICIENT_PRIVILEGE,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: INSUFFICIENT_PRIVILEGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UNDEFINED_TABLE,
    ErrorCode.TOPIC_ALREADY_EXISTS: DUPLICATE_TABLE,
    ErrorCode.INVALID_TOPIC_EXCEPTION: "42602",
    ErrorCode.INVALID_PARTITIONS: INVALID_PARAMETER,
    ErrorCode.INVALID_REPLICATION_FACTOR: INVALID_PARAMETER,
    ErrorCode.INVALID_CONFIG: INVALID_PARAMETER,
    ErrorCode.POLICY_VIOLATION: INSUFFICIENT_PRIVILEGE,
    ErrorCode.MESSAGE_TOO_LARGE: LIMIT_EXCEEDED,
    ErrorCode.RECORD_LIST_TOO_LARGE: LIMIT_EXCEEDED,
    ErrorCode.PRODUCER_FENCED: SERIALIZATION_FAILURE,
    ErrorCode.INVALID_PRODUCER_EPOCH: SERIALIZATION_FAILURE,
}
