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

With `frames="spark"` the rows of a source are DataFrames of Spark, and a sink gets its records as one. The source takes the session as
its third argument.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from barnabas.connect.api import Batch, Config, Connector, Identity, Offset, Sink, Source
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.errors import ConnectError

if TYPE_CHECKING:
    import pyarrow as pa

MADE = "__barnabas_connector__"  # the attribute of a function that has its class
SourceFunction = Callable[..., Iterator[Any]]
SinkFunction = Callable[[Any, Identity], object]
Frames = Literal["arrow", "spark"]


class FunctionSource(Source):
    """A source made of a function."""

    function: SourceFunction
    defaults: Mapping[str, str] = {}
    key: Sequence[str] = ()

    def __init__(self) -> None:
        self._closed = threading.Event()

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        begin = next((dict(offset) for partition, offset in offsets if not partition), {})
        for each in type(self).function(config, begin, *([self.spark] if self.needs_spark else [])):
            yield from self._batches(each)

    def _batches(self, item: Any) -> Iterator[Batch | None]:
        if item is None or isinstance(item, Batch):
            yield item
            return
        try:
            rows, offset = item
        except (TypeError, ValueError):
            raise ConnectError(
                f"a source yields rows and an offset, a Batch, or None; it yielded {type(item).__name__}"
            ) from None
        if self.needs_spark and frames().is_frame(rows):
            yield from frames().parts_of(rows, offset, self._closed, key=self.key)
        else:
            yield Batch(rows, offset, key=self.key)

    def close(self) -> None:
        self._closed.set()


class FunctionSink(Sink):
    """A sink made of a function."""

    function: SinkFunction
    defaults: Mapping[str, str] = {}

    def write(self, records: pa.Table, identity: Identity) -> None:
        shown = frames().frame_of(self.spark, records) if self.needs_spark else records
        type(self).function(shown, identity)


def frames() -> Any:
    """The module that knows DataFrames; imported where Spark is there."""
    from barnabas.connect.runtime import frames

    return frames


def source(
    topic: str | None = None,
    *,
    key: str | Sequence[str] = (),
    name: str | None = None,
    config: ConfigDef | None = None,
    frames: Frames = "arrow",
) -> Callable[[SourceFunction], SourceFunction]:
    """Make a source of a function.

    Args:
        topic: that gets the rows; the key `topic` of the connector's config goes before it.
        key: the field or fields that make the keys of records.
        name: of the connector; by default the function's.
        config: definitions of further keys.
        frames: "spark" if it yields DataFrames.
    """

    def decorate(function: SourceFunction) -> SourceFunction:
        keys = (key,) if isinstance(key, str) else tuple(key)
        defaults = {"name": name or function.__name__, **({"topic": topic} if topic else {})}
        _make(function, FunctionSource, config, defaults, frames, key=keys)
        return function

    return decorate


def sink(
    topics: str | Sequence[str] = (), *, name: str | None = None, config: ConfigDef | None = None, frames: Frames = "arrow"
) -> Callable[[SinkFunction], SinkFunction]:
    """Make a sink of a function.

    Args:
        topics: that it reads; the key `topics` of the connector's config goes before them.
        name, config: as of `source`.
        frames: "spark" if it takes a DataFrame.
    """

    def decorate(function: SinkFunction) -> SinkFunction:
        wanted = topics if isinstance(topics, str) else ",".join(topics)
        defaults = {"name": name or function.__name__, **({"topics": wanted} if wanted else {})}
        _make(function, FunctionSink, config, defaults, frames)
        return function

    return decorate


def _make(
    function: Any, base: type, config: ConfigDef | None, defaults: Mapping[str, str], frames: Frames, **more: Any
) -> None:  # fmt: skip
    if frames not in ("arrow", "spark"):
        raise ConnectError(f"frames of {function.__name__} is {frames!r}; it may be 'arrow' or 'spark'")
    own = {
        "needs_spark": frames == "spark",
        "function": staticmethod(function),
        "config": config or ConfigDef(),
        "families": ("",),  # the function sees the whole config
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
