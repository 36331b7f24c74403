"""Functions that DuckDB cannot write as macros: digests, and the texts of `to_char`. DuckDB calls them for some thousand rows at once."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from barnabas.incremental.intervals import interval_of
from barnabas.incremental.number_formats import number_text
from barnabas.incremental.time_formats import time_text

_DIGESTS = {224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}


def register(instance: Any) -> None:
    """Make the functions known to an instance of DuckDB."""
    options = {"type": "arrow", "null_handling": "special"}
    instance.create_function("__sha", _sha, ["BLOB", "INTEGER"], "BLOB", **options)
    instance.create_function("__escaped", _escaped, ["BLOB"], "VARCHAR", **options)
    instance.create_function("__base64_lines", _base64_lines, ["BLOB"], "VARCHAR", **options)
    instance.create_function("__shown", _shown, ["VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR"], "VARCHAR", **options)


def _each(function: Callable[..., Any], kind: pa.DataType, *columns: Any) -> Any:
    """A function of single values, for columns. A null has no answer but null."""

    def made() -> Iterator[Any]:
        for values in zip(*(each.to_pylist() for each in columns), strict=True):
            yield None if None in values else function(*values)

    return pa.array(list(made()), kind)


def _sha(values: Any, bits: Any) -> Any:
    return _each(digest, pa.binary(), values, bits)


def digest(value: bytes, bits: int) -> bytes | None:
    """SHA-2; None for a length that it does not have, as in Spark."""
    made = _DIGESTS.get(bits)
    return None if made is None else made(value).digest()


def _escaped(values: Any) -> Any:
    return _each(escaped, pa.string(), values)


def escaped(value: bytes) -> str:
    """Bytes as text: those that are no ASCII, and zeros, as `\\377`."""
    return "".join("\\\\" if each == 92 else chr(each) if 0 < each < 128 else f"\\{each:03o}" for each in value)


def _base64_lines(values: Any) -> Any:
    return _each(base64_lines, pa.string(), values)


def base64_lines(value: bytes) -> str:
    """Base64 in lines of 76 characters, as MIME and Postgres have it."""
    text = base64.b64encode(value).decode()
    return "\n".join(text[at : at + 76] for at in range(0, len(text), 76))


def _shown(kinds: Any, values: Any, patterns: Any, zones: Any) -> Any:
    return _each(shown, pa.string(), kinds, values, patterns, zones)


def shown(kind: str, value: str, pattern: str, zone: str = "") -> str:
    """`to_char`.

    Args:
        kind: of the value, in DuckDB's words.
        value: as DuckDB writes it.
        pattern: in Postgres' words.
        zone: of times with a time zone, by DuckDB's name.
    """
    if kind == "TIMESTAMP WITH TIME ZONE":
        return time_text(value, pattern, zone)
    if kind.startswith(("TIMESTAMP", "DATE", "TIME")):
        return time_text(value, pattern)
    if kind == "INTERVAL":
        return interval_of(value, pattern)
    return number_text(value, pattern)
