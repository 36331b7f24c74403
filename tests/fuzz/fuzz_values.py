"""Fuzzing the kernels that make columns of values: damaged JSON and Avro give what decoding one by one gives, or are left for it.

python -m tests.fuzz.fuzz_values --seconds 60
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from barnabas.schemas.codecs import codec_of
from barnabas.schemas.registered import RegisteredSchema
from barnabas.tables.declaration import declared
from barnabas.tables.json_format import JsonFormat, decode_each
from tests.tables.formats.test_avro_program import in_bulk, one_by_one, program_for
from tests.tables.formats.test_json_kernels import binary, texts

AT_ONCE = 50  # payloads of one call of a kernel
COLUMNS = declared(
    "id bigint, price double, amount decimal(12,3), name text, ok boolean, at timestamptz, day date, key uuid, blob binary, tags text[], "
    "address struct<city text, zip int>, scores map<text, double>, counts map<int, int>, any json"
)
VALUES: list[dict[str, Any]] = [
    {
        "id": 12345678901, "price": 1234.5e-3, "amount": 12.345, "name": 'Zoë "Z" \\ \n 😀', "ok": True,
        "at": "2026-01-02T03:04:05.678901+01:00",
        "day": "2026-01-02", "key": "0189d1e2-0000-7000-8000-0000000000AF", "blob": "AQIDBA==", "tags": ["a", None, "ü"],
        "address": {"city": "Bern", "zip": 3000}, "scores": {"a": 1.5, "b": None}, "counts": {"1": 2}, "any": [1, {"x": [True]}],
    },
    {"id": -1, "at": 1767323045678, "day": -1, "amount": "7.5", "name": 5, "other": {"deep": [[[{}]]]}},
]  # fmt: skip
ODD = [
    b'"',
    b"\\",
    b"\\u",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"e9",
    b"-",
    b".",
    b"0",
    b"null",
    b"\xff",
    b"\xc3",
    b"\x00",
    b" ",
]
SCHEMA = RegisteredSchema(1, None, "AVRO", json.dumps({
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "a", "type": "long"},
        {"name": "b", "type": ["null", "string"]},
        {"name": "c", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "d", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "e", "type": ["double", "null"]},
        {"name": "f", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "g", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "h", "type": "boolean"},
    ],
}))  # fmt: skip
AVRO_VALUE = {
    "a": 2**40, "b": "é", "c": Decimal("1.50"), "d": "B", "e": 0.5, "f": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
    "g": UUID(int=7), "h": True,
}  # fmt: skip


def damaged(seed: bytes, choices: random.Random) -> bytes:
    data = bytearray(seed)
    for _ in range(choices.randint(0, 4)):
        at = choices.randrange(len(data) + 1)
        match choices.randrange(4):
            case 0:
                data[at : at + 1] = choices.choice(ODD)
            case 1:
                del data[at : at + choices.randint(1, 8)]
            case 2:
                data[at:at] = choices.randbytes(choices.randint(1, 3))
            case _:
                data[at:at] = choices.choice(ODD)
    return bytes(data)


def check_json(payloads: Sequence[bytes]) -> None:
    array = binary(list(payloads))
    assert texts(JsonFormat(COLUMNS).decode(array, None, [each.name for each in COLUMNS])) == texts(decode_each(COLUMNS, array))


def check_avro(payloads: Sequence[bytes]) -> None:
    program = program_for(SCHEMA, SCHEMA)
    assert program is not None
    rows = in_bulk(program, SCHEMA, list(payloads)), one_by_one(SCHEMA, SCHEMA, list(payloads))
    for payload, bulk, single in zip(payloads, *rows, strict=True):
        assert bulk is ... or repr(bulk) == repr(single), payload


def run_seeded(seconds: float, seed: int) -> int:
    """Damage good values for `seconds`; how many were tried."""
    choices = random.Random(seed)
    checks: list[tuple[Callable[[Sequence[bytes]], None], list[bytes]]] = [
        (check_json, [json.dumps(each, ensure_ascii=ascii_only).encode() for each in VALUES for ascii_only in (True, False)]),
        (check_avro, [codec_of(SCHEMA).encode(AVRO_VALUE), codec_of(SCHEMA).encode(AVRO_VALUE | {"b": None, "e": None})]),
    ]
    tried, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for check, seeds in checks:
            check([damaged(choices.choice(seeds), choices) for _ in range(AT_ONCE)])
            tried += AT_ONCE
    return tried


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seeded: {run_seeded(options.seconds, options.seed)} values")


if __name__ == "__main__":
    main()
