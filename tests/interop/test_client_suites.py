"""The tests that clients bring of their own, as they are: franz-go's for producing, groups of both protocols, transactions and more."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from tests.interop.conftest import SOURCES, Server, running_three

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
PACKAGE = "github.com/twmb/franz-go/pkg/kgo"
RECORDS = 100_000  # records that its groups and transactions copy; its default is 500,000
NEED_A_BROKER = (
    "TestGroupETL",
    "TestGroupETL/range/848",
    "TestTxnEtl",
    "TestTxnEtl/sticky/848",
    "TestConsumeRegex",
    "TestIssue434",
)


def run_franz_go(bootstrap: str, replicas: int) -> dict[str, str]:
    """How each of its tests ended, by name."""
    go = shutil.which("go")
    assert go is not None, "these tests need the Go tool chain (go.dev)"
    told = {"KGO_SEEDS": bootstrap, "KGO_TEST_RF": str(replicas), "KGO_TEST_RECORDS": str(RECORDS)}
    command = [go, "test", "-count=1", "-v", "-timeout=13m", PACKAGE]
    done = subprocess.run(command, cwd=SOURCES / "go", env={**os.environ, **told}, capture_output=True, text=True, check=False)
    ended = {name: how for how, name in re.findall(r"^ *--- (PASS|FAIL|SKIP): (\S+)", done.stdout, re.MULTILINE)}
    assert done.returncode == 0, [name for name, how in ended.items() if how == "FAIL"] or (done.stdout + done.stderr)[-4_000:]
    return ended


def test_franz_go_at_one_broker(server: Server) -> None:
    ended = run_franz_go(server.bootstrap, 1)
    assert {ended[name] for name in NEED_A_BROKER} == {"PASS"}


def test_franz_go_at_three_brokers(server_kind: str) -> None:
    with running_three(server_kind) as bootstrap:
        ended = run_franz_go(bootstrap, 3)
    assert {ended[name] for name in NEED_A_BROKER} == {"PASS"}
