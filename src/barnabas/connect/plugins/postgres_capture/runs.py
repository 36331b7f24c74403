"""Reads many messages of a slot at once: what they have, in which transaction each of them is, and which changes are to come.

No socket, no clock and no catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.postgres_capture.cells import Bytes, Flags, Longs
from barnabas.connect.plugins.postgres_capture.events import (
    IS_CREATE,
    IS_DELETE,
    IS_TRUNCATE,
    IS_UPDATE,
    Codes,
    Places,
)
from barnabas.connect.plugins.postgres_capture.pgoutput import Begin, unreadable
from barnabas.lazy_module import LazyModule

if TYPE_CHECKING:
    from barnabas.connect.plugins.postgres_capture import kernels
else:
    kernels = LazyModule("barnabas.connect.plugins.postgres_capture.kernels")

BEGIN, COMMIT, RELATION, TRUNCATION, INSERT, UPDATE, DELETE = b"BCRTIUD"
OTHERS = b"YOM"  # types, origins, messages of applications
CODES = np.full(256, -1, np.int8)  # of the kinds of changes
CODES[[INSERT, UPDATE, DELETE, TRUNCATION]] = IS_CREATE, IS_UPDATE, IS_DELETE, IS_TRUNCATE


class Progress(NamedTuple):
    """Where in the stream of a slot the reader is.

    Args:
        done_lsn: behind the last transaction that has ended.
        previous_lsn: the same, if that transaction came by this stream; -1 otherwise.
        delivered: the commit record of a transaction that is in the log in part, and how many changes of it are.
        begun: the transaction that has not ended.
        seq: how many changes of it have come.
    """

    done_lsn: int
    previous_lsn: int = -1
    delivered: tuple[int | None, int] = (None, 0)
    begun: Begin | None = None
    seq: int = 0


class Run(NamedTuple):
    """Messages that are read together; arrays have an element or a line for each message.

    Args:
        data: the bytes of all of them.
        lines: what they have (`kernels.py`).
        codes: of the changes that are to come; -1 for all other messages.
        commit_lsns: of their transactions; without meaning for messages outside of a transaction, as in `at`.
        progress: behind them.
    """

    data: Bytes
    kinds: Bytes
    lines: Longs
    codes: Codes
    commit_lsns: Longs
    at: Places
    progress: Progress


def read_run(messages: Sequence[bytes], lsns: Sequence[int], before: Progress) -> Run:
    """Read messages, at least one. Raises ConnectError for one that cannot be read, or that does not fit."""
    ends = np.zeros(len(messages) + 1, np.int64)
    np.cumsum([len(each) for each in messages], out=ends[1:])
    data = np.frombuffer(b"".join(messages), np.uint8)
    lines = np.zeros((len(messages), kernels.WIDTH), np.int64)
    odd = kernels.read_messages(data, ends, lines)
    if odd >= 0:
        raise unreadable(messages[odd])
    kinds = lines[:, kernels.KIND].astype(np.uint8)
    begins, commits = np.flatnonzero(kinds == BEGIN), np.flatnonzero(kinds == COMMIT)
    _check_first(lines[begins, kernels.COMMIT_LSN], begins, commits, before)
    transaction = np.cumsum(kinds == BEGIN)  # 0: the one that was open before
    begun = before.begun or Begin(-1, 0, 0)
    commit_lsns = np.append(begun.commit_lsn, lines[begins, kernels.COMMIT_LSN])[transaction]
    previous = np.append(before.previous_lsn, lines[commits, kernels.END_LSN])[np.searchsorted(commits, begins)]
    at = Places(
        np.array(lsns, np.int64), np.append(before.previous_lsn, previous)[transaction],
        np.append(begun.xid, lines[begins, kernels.XID])[transaction],
        np.append(begun.time_us, lines[begins, kernels.TIME_US])[transaction],
    )  # fmt: skip
    codes = CODES[kinds]
    counts: Longs = np.cumsum(codes >= 0)
    seqs = counts - np.append(-before.seq, counts[begins])[transaction]
    if np.any((codes >= 0) & ~_is_within(kinds, before)):
        raise ConnectError("the slot sent a change outside of a transaction")
    partly = commits[0] if len(commits) else len(messages)  # up to here changes may be in the log
    codes[:partly][seqs[:partly] <= before.delivered[1]] = -1
    return Run(data, kinds, lines, codes, commit_lsns, at, _behind(before, lines, begins, commits, int(seqs[-1])))


def _check_first(commit_lsns: Longs, begins: Longs, commits: Longs, before: Progress) -> None:
    """A transaction that is in the log in part comes first."""
    commit = before.delivered[0]
    if commit is not None and len(begins) and not (len(commits) and commits[0] < begins[0]) and commit_lsns[0] != commit:
        raise ConnectError(
            f"the slot goes on with the transaction at {commit_lsns[0]}, and the one at {commit} is in the topics in part: the slot was "
            "advanced by others"
        )


def _is_within(kinds: Bytes, before: Progress) -> Flags:
    """Whether messages are within a transaction."""
    numbers = np.arange(len(kinds))
    begun = np.maximum.accumulate(np.where(kinds == BEGIN, numbers, -1 if before.begun else -2))
    ended = np.maximum.accumulate(np.where(kinds == COMMIT, numbers, -2 if before.begun else -1))
    found: Flags = begun > ended
    return found


def _behind(before: Progress, lines: Longs, begins: Longs, commits: Longs, seq: int) -> Progress:
    if len(commits):
        end_lsn = int(lines[commits[-1], kernels.END_LSN])
        before = Progress(end_lsn, end_lsn)
    if len(begins) and (not len(commits) or begins[-1] > commits[-1]):
        line = lines[begins[-1]]
        begun = Begin(int(line[kernels.COMMIT_LSN]), int(line[kernels.TIME_US]), int(line[kernels.XID]))
        return before._replace(begun=begun, seq=seq)
    return before._replace(seq=seq) if before.begun is not None else before
