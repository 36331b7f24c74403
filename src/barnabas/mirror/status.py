"""What a broker tells about the copies that it leads, as read-only settings of the link: one JSON text for each partition."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from barnabas.error_codes import code_name
from barnabas.errors import ProtocolError

PREFIX = "status."  # of the names of these settings; the rest is TOPIC-PARTITION
LINK_STATUS = "status"  # the setting with what the broker tells about the link itself
NO_ANSWER = "no answer of the source yet"  # the error of a link whose first attempt is not over


class PartitionStatus(Struct, frozen=True):
    """One partition of a copy.

    Args:
        state: one of mirror.state, ready (to be opened for writers), stopped, or in a failback inspected, compared or truncated.
        source_end_offset: -1 before the first answer of the source; then lag is -1 too.
        lag: records of the source that are not here.
        lag_ms: time since the copy had everything.
        reason: what holds the copy back; empty if nothing does.
        producer_id_end: all producer ids in the copy are below.
        lag_bytes: about the size of these records, as that of the records here; -1 if it is not known.
        copied_end_offset: the end without the markers that a promotion has appended.
        silent_ms: the time since the source told its end; -1 if it has not.
        source_leader_epoch: the highest leader epoch that the source has told; -1 if it has told none.
        common_offset: in a failback, the offset below which the source has the same; -1 before it is found.
    """

    topic: str
    partition: int
    state: str
    start_offset: int
    end_offset: int
    source_end_offset: int
    lag: int
    lag_ms: int
    reason: str
    producer_id_end: int
    common_offset: int = -1
    copied_end_offset: int = -1
    silent_ms: int = -1
    lag_bytes: int = -1
    source_leader_epoch: int = -1

    @property
    def lost_ms(self) -> int:
        """If the source died now: from how long ago records may be missing. -1 if it is not known."""
        return self.lag_ms if self.lag > 0 else self.silent_ms


class LinkTimes(Struct, frozen=True):
    """The times of a broker's fetchers in the last `window_s` seconds.

    Args:
        seconds: by `fetch_times.Part`, of all fetchers that have copies.
        bytes: of records that came.
        round_trip_ms: the shortest wait for an answer of the source; -1 without an answer.
    """

    seconds: dict[str, float] = {}
    bytes: int = 0
    fetchers: int = 0
    round_trip_ms: float = -1.0
    window_s: float = 0.0


class LinkStatus(Struct, frozen=True):
    """One broker's view of a link.

    Args:
        error: that of the last contact with the source.
        refused: topics that cannot be copied, with the reason.
        not_followed: other things that cannot be copied, such as ACLs, with the reason.
        times: of its fetchers.
        group_rounds: how often it has copied the offsets of all its groups; -1 if it copies none.
    """

    error: str = ""
    refused: dict[str, str] = {}
    not_followed: dict[str, str] = {}
    times: LinkTimes = LinkTimes()
    group_rounds: int = -1


def refusal(code: int) -> str:
    """The reason to tell if the source answers with an error."""
    return f"the source answers {code_name(code)}"


def encode(status: PartitionStatus | LinkStatus) -> str:
    return msgspec.json.encode(status).decode()


def decode_partition(text: str) -> PartitionStatus:
    """Raises ProtocolError for a text that `encode` has not made."""
    try:
        return _PARTITION.decode(text)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"status of a copy: {error}") from error


def decode_link(text: str) -> LinkStatus:
    """Raises ProtocolError as `decode_partition`."""
    try:
        return _LINK.decode(text)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"status of a link: {error}") from error


_PARTITION = msgspec.json.Decoder(PartitionStatus)  # made at import, because threads must not make it at once
_LINK = msgspec.json.Decoder(LinkStatus)
