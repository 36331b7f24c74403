"""Connectors that are functions with a decorator.

A source function takes the parsed config and the offset that was committed last (an empty dictionary at first), and yields rows and the
offset behind them, or None while there is nothing:

    @source(topic="numbers", key="n")
    def numbers(config, offset):
        for n in itertools.count(offset.get("n", 0)):
            yield [{"n": n}], {"n": n + 1}

A sink function takes a `pyarrow.Table` of records (`connect/api.py`) and the identity of the batch:

    @sink(topics="numbers")
    def show(records, identity):
        print(records["value"].to_pylist())
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.connect.api import Batch, Config, Connector, Identity, Offset, Sink, Source
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.errors import ConnectError

if TYPE_CHECKING:
    import pyarrow as pa

MADE = "__barnabas_connector__"  # the attribute of a function that has its class
SourceFunction = Callable[[Config, Offset], Iterator[Any]]
SinkFunction = Callable[["pa.Table", Identity], object]


class FunctionSource(Source):
    """A source made of a function."""

    function: SourceFunction
    defaults: Mapping[str, str] = {}
    key: Sequence[str] = ()

    def __init__(self) -> None:
        self._running: Iterator[Any] | None = None

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        begin = next((dict(offset) for partition, offset in offsets if not partition), {})
        for each in type(self).function(config, begin):
            yield self._batch(each)

    def _batch(self, item: Any) -> Batch | None:
        if item is None or isinstance(item, Batch):
            return item
        try:
            rows, offset = item
        except (TypeError, ValueError):
            raise ConnectError(
                f"a source yields rows and an offset, a Batch, or None; it yielded {type(item).__name__}"
            ) from None
        return Batch(rows, offset, key=self.key)


class FunctionSink(Sink):
    """A sink made of a function."""

    function: SinkFunction
    defaults: Mapping[str, str] = {}

    def write(self, records: pa.Table, identity: Identity) -> None:
        type(self).function(records, identity)


def source(
    topic: str | None = None, *, key: str | Sequence[str] = (), name: str | None = None, config: ConfigDef | None = None
) -> Callable[[SourceFunction], SourceFunction]:
    """Make a source of a function.

    Args:
        topic: that gets the rows; the key `topic` of the connector's config goes before it.
        key: the field or fields that make the keys of records.
        name: of the connector; by default the function's.
        config: definitions of further keys.
    """

    def decorate(function: SourceFunction) -> SourceFunction:
        keys = (key,) if isinstance(key, str) else tuple(key)
        defaults = {"name": name or function.__name__, **({"topic": topic} if topic else {})}
        _make(function, FunctionSource, config, defaults, key=keys)
        return function

    return decorate


def sink(
    topics: str | Sequence[str] = (), *, name: str | None = None, config: ConfigDef | None = None
) -> Callable[[SinkFunction], SinkFunction]:
    """Make a sink of a function.

    Args:
        topics: that it reads; the key `topics` of the connector's config goes before them.
        name, config: as of `source`.
    """

    def decorate(function: SinkFunction) -> SinkFunction:
        wanted = topics if isinstance(topics, str) else ",".join(topics)
        defaults = {"name": name or function.__name__, **({"topics": wanted} if wanted else {})}
        _make(function, FunctionSink, config, defaults)
        return function

    return decorate


def _make(function: Any, base: type, config: ConfigDef | None, defaults: Mapping[str, str], **more: Any) -> None:
    own = {
        "function": staticmethod(function),
        "config": config or ConfigDef(),
        "defaults": defaults,
        "__doc__": function.__doc__,
        **more,
    }
    setattr(function, MADE, type(function.__name__, (base,), own))


def connector_class(found: Any) -> type[Connector]:
    """The class of a connector: of what an entry point names. Raises ConnectError for what is none."""
    made = getattr(found, MADE, found)
    if isinstance(made, type) and issubclass(made, (Source, Sink)):
        return made
    raise ConnectError(f"{found!r} is no connector: neither a Source nor a Sink, nor a function with their decorator")
