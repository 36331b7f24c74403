"""The messages that every client sends and every client must read back."""

from __future__ import annotations

from dataclasses import dataclass

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BASE_TIME_MS = 1_700_000_000_000
STEP_MS = 1_000
MEGABYTE = b"0123456789abcdef" * 65_536


@dataclass(frozen=True)
class Sent:
    """One message as sent and as expected."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = BASE_TIME_MS


def messages() -> list[Sent]:
    """Plain ones, tombstones, no key, no bytes, headers twice and empty, and a second later each.

    The value of a plain one repeats itself, so every codec makes its batch smaller, even if it is alone there: a client
    sends a batch as it is if its codec saves nothing, and a client on a busy machine may send any number of messages at once.
    """
    plain = [Sent(f"k{index}".encode(), f"value {index} ".encode() * 40) for index in range(20)]
    special = [
        Sent(b"tombstone", None),
        Sent(None, b"no key"),
        Sent(b"", b""),
        Sent("schlüssel".encode(), "größe".encode()),
        Sent(b"headers", b"h", (("a", b"1"), ("a", b"2"), ("empty", b""))),
        Sent(b"binary", bytes(range(256))),
    ]
    return [
        Sent(each.key, each.value, each.headers, BASE_TIME_MS + index * STEP_MS) for index, each in enumerate(plain + special)
    ]
