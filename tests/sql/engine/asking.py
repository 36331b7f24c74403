"""A session of the SQL engine, asked in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from barnabas.client.config import ClientConfig
from barnabas.sql.duck.pool import QueryLimits
from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import Caller, SqlError
from barnabas.sql.session import SqlSession
from barnabas.testing import Broker


class Answer(NamedTuple):
    """The outcome of a statement."""

    tag: str
    names: list[str]
    rows: list[tuple[Any, ...]]


class Asking:
    """A session.

    Args:
        session: of any engine.
    """

    def __init__(self, session: SqlSession) -> None:
        self.session = session

    def __call__(self, text: str, *values: Any, types: Sequence[pa.DataType | None] = ()) -> Answer:
        """Run a statement."""
        result = self.session.execute(self.session.prepare(text, types), values)
        names = list(result.schema.names) if result.schema is not None else []
        rows = [row for batch in result.batches() for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]
        result.close()
        return Answer(result.tag, names, rows)

    def rows(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        return self(text, *values).rows

    def tag(self, text: str, *values: Any) -> str:
        """The tag of a statement."""
        return self(text, *values).tag

    def error(self, text: str, *values: Any) -> SqlError:
        """The error of a statement."""
        with pytest.raises(SqlError) as caught:
            self(text, *values)
        return caught.value

    def copy_in(self, text: str, *data: bytes) -> str:
        """The tag of a COPY FROM with this data."""
        return self.session.copy_in(self.session.prepare(text), iter(data)).tag

    def copy_out(self, text: str) -> bytes:
        """The data of a COPY TO."""
        return b"".join(self.session.copy_out(self.session.prepare(text)))


def engine_of(broker: Broker, **options: Any) -> SqlEngine:
    """An engine over a broker; a limit of queries is an option."""
    config = ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers})
    limits = {name: options.pop(name) for name in list(options) if name in QueryLimits.__dataclass_fields__}
    return SqlEngine(config, limits=QueryLimits(**limits), **options)


def asking(engine: SqlEngine, **parameters: str) -> Asking:
    """A session with these parameters."""
    return Asking(engine.session(Caller(parameters=parameters)))


def pieces(text: bytes, size: int) -> Iterator[bytes]:
    """A text in pieces."""
    for start in range(0, len(text), size):
        yield text[start : start + size]
