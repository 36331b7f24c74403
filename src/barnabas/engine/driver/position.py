"""Where a job is in its topics, and where its next step ends. No I/O.

Rules
  1. The offsets behind a step are kept with the state of the step. Who plans micro-batches, and how often one comes, does not matter.
  2. A step that the topic of the job has, and its state does not, is taken again with the same records: it ends where the progress says,
     which was written with its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from barnabas.engine.jobs import JobProgress
from barnabas.incremental.interface import FlowError
from barnabas.pipelines.offsets import TOPIC_IDS, from_stream_offset, stream_offset

StreamOffset = dict[str, Any]  # in the form of the source of Spark
_OFFSETS = msgspec.json.Decoder(dict[str, dict[str, Any]])  # made at import, because threads must not make it at once


class Position:
    """Of one job.

    Args:
        step: the last one that the state has.
        note: the offsets behind it, as `note_of` wrote them; empty for a state without a step, or of an earlier version.
        progress: the last of the job's generation, if there is one.

    Raises:
        FlowError: the state is behind its topic by more than a step, or does not say where it is.
    """

    def __init__(self, step: int, note: str, progress: JobProgress | None) -> None:
        self.offsets: StreamOffset | None = dict(_OFFSETS.decode(note)) if note else None
        self.repeats: StreamOffset | None = None  # the end of a step that only the topic has
        written = -1 if progress is None else progress.batch
        if written > step + 1:
            raise FlowError(f"the topic has the rows of step {written}, and the state ends with step {step}")
        if progress is not None and written == step + 1:
            self.repeats = _with_ids(progress.offsets, self.offsets)
        if self.offsets is None and step > 0:
            if progress is None or written != step:
                raise FlowError(f"the state does not say which offsets its step {step} has")
            self.offsets = _with_ids(progress.offsets, None)

    def begin(self, offsets: StreamOffset) -> None:
        """Begin where nothing was read."""
        assert self.offsets is None
        self.offsets = offsets

    def ahead(self, end: StreamOffset) -> StreamOffset | None:
        """Where the next step ends if there are records up to `end`; None if the state has all of them."""
        assert self.offsets is not None
        if self.repeats is not None:
            return self.repeats
        (here, ids), (there, newer) = from_stream_offset(self.offsets), from_stream_offset(end)
        later = {**here, **{tp: max(offset, here.get(tp, offset)) for tp, offset in there.items()}}
        return None if later == here else stream_offset(later, {**ids, **newer})

    def reach(self, end: StreamOffset) -> None:
        """The state has a step up to `end`."""
        self.offsets, self.repeats = end, None

    def is_at(self, start: StreamOffset) -> bool:
        """Whether the next step begins there, and ends where the caller wants."""
        return (
            self.repeats is None
            and self.offsets is not None
            and from_stream_offset(self.offsets)[0] == from_stream_offset(start)[0]
        )


def note_of(offsets: StreamOffset) -> str:
    """Offsets as the note of a step."""
    return msgspec.json.encode(offsets).decode()


def by_topic(offsets: StreamOffset) -> dict[str, dict[int, int]]:
    """The offsets by topic and partition."""
    found: dict[str, dict[int, int]] = {}
    for (topic, partition), end in from_stream_offset(offsets)[0].items():
        found.setdefault(topic, {})[partition] = end
    return found


def _with_ids(offsets: Mapping[str, Mapping[str, int]], known: StreamOffset | None) -> StreamOffset:
    ids = {} if known is None else known.get(TOPIC_IDS, {})
    return {**{topic: dict(parts) for topic, parts in offsets.items()}, **({TOPIC_IDS: ids} if ids else {})}
