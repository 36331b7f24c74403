"""Java clients of former versions: the oldest that Kafka 4.3 serves, and others between which clients changed what they bear."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tools.kafka import OLDER_CLIENTS, java

from tests.interop.conftest import Server

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
ROUND_TRIP = Path(__file__).parent / "java" / "RoundTrip.java"
JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
RECORDS = 20
Unique = Callable[[str], str]


@pytest.mark.parametrize("version", OLDER_CLIENTS)
def test_a_client_of_a_former_version_writes_and_reads(version: str, server: Server, unique: Unique) -> None:
    topic = unique("older")
    command = java(str(ROUND_TRIP), server.bootstrap, topic, str(RECORDS), jvm=JVM, jars=f"clients-{version}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    *found, groups = done.stdout.splitlines()
    assert sorted(found) == sorted(f"key {number}: value {number}" for number in range(RECORDS))
    assert int(groups.removeprefix("groups ")) >= 1
