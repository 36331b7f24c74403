"""Connect beside a secured broker: callers log in as at the broker, and need rights on the topic of the configs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.conftest import command as command
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(180)


def test_a_secured_worker_asks_for_rights(command: Command, tmp_path: Path) -> None:
    start = [
        sys.executable, "-m", "barnabas.cli", "start", "--secure", "--log-level", "warning", "--data-dir", str(tmp_path / "data"),
        "--listeners", "SASL_SSL://127.0.0.1:0", "--connect-listener", "https://127.0.0.1:0", "--engine-listener", "https://127.0.0.1:0",
    ]  # fmt: skip
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen(start, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        broker = lines[0].split("connections on ")[1].strip().partition("://")[2]
        (url,) = [line.split("connections on ")[1].strip() for line in lines if " Connect " in line]
        assert any(" engine " in line for line in lines)  # which runs its tasks
        admin = tmp_path / "data-security" / "admin.properties"
        cluster = ("-b", broker, "--command-config", admin)
        (tmp_path / "c.properties").write_text("name=s\nconnector.class=FileStreamSource\ntopic=t\ninitial.state=x\n")
        assert command("connect", "list", "--url", url, "--command-config", admin).err == "there is no connector\n"
        assert command("user", "add", "alice", *cluster, stdin=b"geheim\n").code == 0
        settings = admin.read_text().replace("sasl.username", "#").replace("sasl.password", "#").replace("sasl.jaas.config", "#")
        alice = tmp_path / "alice.properties"
        alice.write_text(f"{settings}\nsasl.username=alice\nsasl.password=geheim\n")
        at = ("--url", url, "--command-config", alice)
        refused = command("connect", "list", *at)
        assert refused.err.endswith("User:alice needs READ on the topic connect-configs\n"), refused.err
        grant = ("acl", "add", "--principal", "User:alice", "--topic", "connect-configs", *cluster, "--operation")
        assert command(*grant, "read").code == 0
        wait_until(lambda: command("connect", "list", *at).code == 0)
        assert command("connect", "create", tmp_path / "c.properties", *at).err.endswith(
            "needs WRITE on the topic connect-configs\n"
        )
        assert command(*grant, "write").code == 0
        wait_until(lambda: command("connect", "create", tmp_path / "c.properties", *at).code == 0)
        assert command("connect", "stop", "s", *at).text == "stopped s\n"
        assert command("connect", "list", "--url", url).code == 1
    finally:
        process.terminate()
        process.communicate(timeout=60)
