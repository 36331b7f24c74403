"""Fuzzing the record batch decoder: whatever the bytes, a `KafkaError` or a batch that reads back, and within memory.

    python -m tests.fuzz.fuzz_records --seconds 60

With atheris installed the inputs are guided by coverage; else they come from a seeded generator that damages good batches.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import struct
import sys
import time
from zlib import crc32

from crc32c import crc32c

from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError
from barnabas.protocol.codec import write_varint
from barnabas.protocol.records import multi_partition_scan, request_scan
from barnabas.protocol.records.batch import (
    AppendOrigin,
    Compression,
    Record,
    build_batch,
    iterate_records,
    read_header,
    split_batches,
    validate_batch,
)
from barnabas.protocol.records.batch_header import HEADER_SIZE
from barnabas.protocol.records.message_sets.down_conversion import message_set_of
from barnabas.protocol.records.message_sets.message_codec import read_messages
from barnabas.protocol.records.message_sets.up_conversion import batch_of
from barnabas.protocol.records.scan import multi_partition_walker, walker

NOW = 1_700_000_000_000
CONFIGS = [TopicConfig(), TopicConfig(cleanup_policy=frozenset({"compact"}), compression_type="lz4")]
CRC = struct.Struct(">I")
START = bytes(30)  # start of a request whose records have a length field of four bytes
KNOWN = {b"t" + bytes(4): 0}
LIMITS = request_scan.Limits(2**20, 2**20, 0, 2**62, 2**40, 2**31, 10, False, True)


def one_input(data: bytes) -> None:
    """Walk, check and read `data` as a produce request's records, once as it is and once with its CRC made right."""
    _try(data)
    _try_set(data)
    _agree(data)
    if len(data) > 21:
        mended = bytearray(data)
        struct.pack_into(">q", mended, 0, 0)
        struct.pack_into(">i", mended, 8, len(data) - 12)
        mended[16] = 2
        CRC.pack_into(mended, 17, crc32c(mended[21:]))
        _try(bytes(mended))
    if len(data) > 17:
        mended = bytearray(data)
        struct.pack_into(">i", mended, 8, len(data) - 12)
        mended[16] = data[16] & 1
        CRC.pack_into(mended, 12, crc32(mended[16:]))
        _try_set(bytes(mended))


def _try_set(data: bytes) -> None:
    """As what a Produce request of old has, and, where it is a batch, as what a Fetch of old gets of it."""
    try:
        batch = batch_of(data, CONFIGS[0])
        if batch is not None and batch is not data and len(list(iterate_records(batch))) != read_header(batch).records_count:
            raise AssertionError("a message set became a batch with another number of records")
    except KafkaError:
        pass
    for magic in (0, 1):
        try:
            message_set = message_set_of(data, magic, 0)
        except KafkaError:
            continue
        read_messages(message_set.data, 2**31)


def _try(data: bytes) -> None:
    try:
        batches = split_batches(data)
    except KafkaError:
        return
    for position, header in batches:
        for config in CONFIGS:
            try:
                checked = validate_batch(data, header, config=config, now_ms=NOW, origin=AppendOrigin.CLIENT, position=position)
            except KafkaError:
                continue
            stored, at = (data, position) if checked.rewritten is None else (checked.rewritten, 0)
            records = list(iterate_records(stored, at))
            if len(records) != read_header(stored, at).records_count:
                raise AssertionError("an accepted batch reads back with another number of records")


def _agree(data: bytes) -> None:
    """Machine code, if it was made, sees in records and requests what the text sees that it stands for."""
    body = data[HEADER_SIZE:]
    count = int.from_bytes(data[57:HEADER_SIZE], "big") % 1_000
    frame = START + len(data).to_bytes(4, "big") + data
    requests = (len(frame).to_bytes(4, "big") + frame) * 2, 0, START, False, LIMITS
    if walker.walk_records(body, count) != request_scan.walk_records(body, count):
        raise AssertionError("records are seen in two ways")
    if walker.walk_requests(*requests) != request_scan.walk_requests(*requests):
        raise AssertionError("requests are seen in two ways")
    for version, batches in ((8, _plain_topic(data) + data), (9, _flexible_topic(data) + data + bytes(3))):
        frame = START + batches
        spread_out = (len(frame).to_bytes(4, "big") + frame) * 2, 0, START, version, 2**20, 2**20, 10, KNOWN, len(KNOWN)
        if multi_partition_walker.read_requests(*spread_out) != multi_partition_scan.read_requests(*spread_out):
            raise AssertionError("requests for several partitions are seen in two ways")


def _plain_topic(data: bytes) -> bytes:
    """The part of an old request before the batch of one partition."""
    return (1).to_bytes(4, "big") + b"\0\1t" + (1).to_bytes(4, "big") + bytes(4) + len(data).to_bytes(4, "big")


def _flexible_topic(data: bytes) -> bytes:
    """The same with lengths as varints."""
    told = bytearray(b"\2\2t\2" + bytes(4))
    write_varint(len(data) + 1, told)
    return bytes(told)


def _seeds() -> list[bytes]:
    records = [Record(0, NOW + index, b"key", b"value" * index, (("h", b"x"),) * (index % 2)) for index in range(40)]
    uniform = [Record(0, NOW, None, b"v" * 20) for _ in range(100)]
    batches = [build_batch(items, compression=codec) for items in (records, uniform) for codec in Compression]
    old = [codec for codec in Compression if codec != Compression.ZSTD]
    sets = [message_set_of(build_batch(records, compression=codec), magic, 0).data for codec in old for magic in (0, 1)]
    return batches + list(map(bytes, sets))


def _damage(seed: bytes, choices: random.Random) -> bytes:
    data = bytearray(seed)
    for _ in range(choices.randint(1, 6)):
        at = choices.randrange(len(data))
        match choices.randrange(3):
            case 0:
                data[at] = choices.randrange(256)
            case 1:
                del data[at : at + choices.randint(1, 8)]
            case _:
                data[at:at] = choices.randbytes(choices.randint(1, 8))
        if not data:
            break
    return bytes(data)


def run_seeded(seconds: float, seed: int) -> int:
    """Damage good batches for `seconds`; how many were tried."""
    choices = random.Random(seed)
    seeds, tried, end = _seeds(), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        one_input(_damage(choices.choice(seeds), choices))
        tried += 1
    return tried


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seeded: {run_seeded(options.seconds / 2, options.seed)} inputs")
    if importlib.util.find_spec("atheris") is not None:
        import atheris

        atheris.instrument_all()
        atheris.Setup([sys.argv[0], f"-max_total_time={max(1, options.seconds // 2)}", "-rss_limit_mb=1024"], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
