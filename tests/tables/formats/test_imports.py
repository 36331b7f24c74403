"""numba compiles kernels at their first import after an installation; readers of raw records wait for none of those of formats."""

from __future__ import annotations

import subprocess
import sys

import pytest
from confluent_kafka import Producer

from barnabas.testing import Broker

LOADED = """
import sys
print(*sorted(name.rpartition(".")[2] for name in sys.modules if name.startswith("barnabas.tables.kernels.")))
"""


def loaded_by(code: str) -> set[str]:
    """The modules of `tables.kernels` that a fresh process has after some code."""
    done = subprocess.run([sys.executable, "-c", code + LOADED], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def reading(broker: Broker, **options: str) -> str:
    return f"from barnabas.tables import table\ntable('imports', {broker.bootstrap_servers!r}, **{options!r}).arrow()\n"


@pytest.fixture(scope="module")
def topic(broker: Broker) -> Broker:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("imports", b'{"a": 1}', b"7")
    assert producer.flush(30) == 0
    return broker


def test_raw_records_and_text_need_no_kernels_of_formats(topic: Broker) -> None:
    assert loaded_by(reading(topic)) == set()
    assert loaded_by(reading(topic, format="text", key="text")) == set()


def test_a_topic_without_a_schema_needs_none(topic: Broker, registry_url: str) -> None:
    assert loaded_by(reading(topic, format="auto", registry=registry_url)) == set()


def test_json_does_not_need_those_of_avro(topic: Broker) -> None:
    found = loaded_by(reading(topic, format="json", columns="a int", key="k bigint"))
    assert "json_convert" in found
    assert not {each for each in found if each.startswith("avro")}


def test_the_engine_of_sql_and_the_command_need_none() -> None:
    assert loaded_by("import barnabas.sql.engine, barnabas.cli.table") == set()
