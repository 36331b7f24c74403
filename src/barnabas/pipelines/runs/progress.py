"""The progress of a streaming query, written to a file for `barnabas pipeline run` and `list`.

The planner of a query is in a process that Spark starts, several levels below the process of the run. It writes its progress
(rows read, lag) to a small file in the folder that an environment variable names; without the variable it writes nothing.

Rules
  1. A file is replaced atomically, so that a reader never sees a part of it.
  2. Progress is only information: a write error is logged once and does not stop a query.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from barnabas.pipelines.offsets import TopicPartition

logger = logging.getLogger(__name__)

FOLDER_VARIABLE = "BARNABAS_PROGRESS_DIR"
MIN_INTERVAL_S = 0.5  # between two writes for the same query
WINDOW_S = 10.0  # the rate of rows is measured over this time
MAX_SAMPLES = 1_000
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """The progress of one source of one query in this run.

    Args:
        topics: the topics that it reads.
        group: the consumer group of its committed offsets; None if it commits none.
        rows: the number of offsets in finished batches.
        rows_per_second: the rate over the last ten seconds that had a batch.
        lag: offsets between the finished batches and the end of the topics.
        updated_s: seconds since the epoch.
    """

    topics: list[str]
    group: str | None
    rows: int
    rows_per_second: float
    lag: int
    updated_s: float


class ProgressFile:
    """The file of one query's source.

    Args:
        folder: its folder; with None it writes nothing.
        group: the consumer group for the query's offsets.
    """

    def __init__(self, folder: str | None, group: str | None) -> None:
        self._path = None if folder is None else Path(folder) / f"source-{os.getpid()}-{next(_numbers)}.json"
        self._group = group
        self._rows = 0
        self._last: Mapping[TopicPartition, int] = {}
        self._samples: deque[tuple[float, int]] = deque(maxlen=MAX_SAMPLES)
        self._written_s = 0.0

    @classmethod
    def of_environment(cls, group: str | None) -> ProgressFile:
        return cls(os.environ.get(FOLDER_VARIABLE), group)

    def record(self, finished: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], now_s: float) -> None:
        """Record the position of the query and the ends of its partitions."""
        if self._path is None:
            return
        moved = sum(max(offset - self._last.get(tp, offset), 0) for tp, offset in finished.items())
        self._last = dict(finished)
        self._rows += moved
        self._samples.append((now_s, self._rows))
        while len(self._samples) > 2 and now_s - self._samples[1][0] > WINDOW_S:
            self._samples.popleft()
        if not moved and now_s - self._written_s < MIN_INTERVAL_S:
            return
        self._written_s = now_s
        lag = sum(max(offset - finished.get(tp, 0), 0) for tp, offset in end.items())
        topics = sorted({topic for topic, _ in (*finished, *end)})
        self._write(self._path, SourceProgress(topics, self._group, self._rows, self._rate(), lag, now_s))

    def _rate(self) -> float:
        (first_s, first), (last_s, last) = self._samples[0], self._samples[-1]
        return round((last - first) / (last_s - first_s), 1) if last_s > first_s else 0.0

    def _write(self, path: Path, progress: SourceProgress) -> None:
        try:
            draft = path.with_suffix(".new")
            draft.write_text(json.dumps(asdict(progress)))
            draft.replace(path)
        except OSError as error:
            logger.warning("event=progress-not-shown error=%r", str(error))
            self._path = None


def read_progress(folder: Path) -> list[SourceProgress]:
    """The progress of all sources in `folder`, in the order of their topics."""
    found = []
    for path in folder.glob("source-*.json"):
        try:
            found.append(SourceProgress(**json.loads(path.read_text())))
        except (OSError, ValueError, TypeError) as error:
            logger.warning("event=not-a-progress-file path=%s error=%r", path, str(error))
    return sorted(found, key=lambda item: (item.topics, item.updated_s))
