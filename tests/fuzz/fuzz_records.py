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

from crc32c import crc32c

from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError
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

NOW = 1_700_000_000_000
CONFIGS = [TopicConfig(), TopicConfig(cleanup_policy=frozenset({"compact"}), compression_type="lz4")]
CRC = struct.Struct(">I")


def one_input(data: bytes) -> None:
    """Walk, check and read `data` as a produce request's records, once as it is and once with its CRC made right."""
    _try(data)
    if len(data) > 21:
        mended = bytearray(data)
        struct.pack_into(">q", mended, 0, 0)
        struct.pack_into(">i", mended, 8, len(data) - 12)
        mended[16] = 2
        CRC.pack_into(mended, 17, crc32c(mended[21:]))
        _try(bytes(mended))


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


def _seeds() -> list[bytes]:
    records = [Record(0, NOW + index, b"key", b"value" * index, (("h", b"x"),) * (index % 2)) for index in range(40)]
    uniform = [Record(0, NOW, None, b"v" * 20) for _ in range(100)]
    return [build_batch(items, compression=codec) for items in (records, uniform) for codec in Compression]


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
