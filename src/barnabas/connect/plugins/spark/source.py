"""Reads any format of Spark into a topic: files and tables at once or again and again, databases by JDBC, streams."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from barnabas.connect.api import Batch, Config, Offset, Source
from barnabas.connect.plugins.spark import polls
from barnabas.connect.plugins.spark.settings import KEYS, OPTION, STREAMING, Settings, errors_of, settings_of
from barnabas.connect.plugins.spark.stream import Stream
from barnabas.connect.plugins.sql_source.position import position_of
from barnabas.connect.plugins.sql_source.settings import BULK
from barnabas.connect.runtime.frames import batches_of

POLLS = "polls"  # of an offset with mode=bulk: how many there were


class SparkSource(Source):
    """See the module. The rows of a poll are one transaction, with the position behind them."""

    families = (OPTION,)
    config = KEYS
    needs_spark: ClassVar[bool] = True

    def __init__(self) -> None:
        self._closed = threading.Event()
        self._stream: Stream | None = None

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        return errors_of(config)

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        settings = settings_of(config)
        offset = next((offset for partition, offset in offsets if not partition), {})
        if settings.mode == STREAMING:
            self._stream = Stream(self.spark, settings, offset, self._closed)
            yield from self._stream.batches()
        elif settings.mode == BULK:
            yield from self._all(settings, int(offset.get(POLLS, 0)))
        else:
            yield from self._behind(settings, offset)

    def _all(self, settings: Settings, count: int) -> Iterator[Batch | None]:
        """All rows at each poll."""
        while not self._closed.is_set():
            if settings.poll_s is None and count:
                return
            count += 1
            rows = polls.polled(self.spark, settings, position_of({}))
            assert rows is not None
            for each in batches_of(rows, self._closed):
                yield Batch(each, None, key=settings.key)
            if not self._closed.is_set():
                yield Batch((), {POLLS: count})
                self._closed.wait(settings.poll_s or 0.0)

    def _behind(self, settings: Settings, offset: Offset) -> Iterator[Batch | None]:
        """The rows behind those of the poll before."""
        position = position_of(offset)
        while not self._closed.is_set():
            rows = polls.polled(self.spark, settings, position)
            if rows is not None:
                end = position
                for each in batches_of(rows, self._closed):
                    end = polls.greatest(end, each, settings)
                    yield Batch(each, None, key=settings.key)
                if self._closed.is_set():
                    return
                position = end
                yield Batch((), position.offset)
            if settings.poll_s is None:
                return
            self._closed.wait(settings.poll_s)
            yield None

    def committed(self, partition: Mapping[str, Any], offset: Offset) -> None:
        if self._stream is not None:
            self._stream.committed(offset)

    def close(self) -> None:
        self._closed.set()
