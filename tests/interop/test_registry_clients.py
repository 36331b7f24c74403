"""Clients of a schema registry that others wrote: @kafkajs/confluent-schema-registry, franz-go's `sr`, and confluent-kafka with rules.

The serialisers of confluent-kafka without rules are in `tests/schemas/`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.interop.environments import SOURCES, environment

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
Unique = Callable[[str], str]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Broker() as broker:
        yield broker.schema_registry_url


def check(command: list[str], scenarios: int, folder: Path | None = None) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") == scenarios


def test_javascript(url: str, js_program: Path, unique: Unique) -> None:
    check(["node", "registry.js", url, unique("js")], 7, js_program)


def test_go(url: str, go_program: Path, unique: Unique) -> None:
    check([str(go_program), "registry", url, unique("go")], 8)


def test_python_with_rules(url: str, unique: Unique) -> None:
    check([str(environment("confluent-rules")), str(SOURCES / "registry_rules.py"), url, unique("rules")], 3)
