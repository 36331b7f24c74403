"""CRC-32C as the specification of iSCSI has it (RFC 3720, B.4), and that loading it costs a start little."""

from __future__ import annotations

import subprocess
import sys

import pytest

from barnabas.protocol.records.crc import crc32c


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
    ],
)
def test_known_sums(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected
    assert crc32c(data[9:], crc32c(data[:9])) == expected


def test_a_broker_loads_nothing_that_only_tells_versions_or_asks_over_http() -> None:
    modules = ["importlib.metadata", "crc32c", "http.client", "urllib.request", "email"]
    program = f"import sys, barnabas.server.main; print(*[name for name in {modules} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
