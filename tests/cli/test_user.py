"""`barnabas user`."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.user import _Running, read_password, upsertions
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from barnabas.security.users import Deletion
from barnabas.testing import Broker
from tests.cli.conftest import UNUSED, Command

SASL = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512"}


def shown(user: str, password: str, mechanism: str = "SCRAM-SHA-512") -> list[str]:
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }
    return [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]


def test_the_first_user_is_made_before_the_first_start_and_makes_others(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert command("user", "add", "admin", "--data-dir", folder, stdin=b"geheim\n").code == 0
    with Broker(SASL, data_dir=folder) as broker:
        where = ["-b", broker.bootstrap_servers]
        as_admin = [*where, *shown("admin", "geheim")]
        (tmp_path / "password").write_text("pw of alice\nanother line\n")
        added = command(
            "user", "add", "alice", "--password-file", tmp_path / "password", "--mechanism", "SCRAM-SHA-256", *as_admin
        )
        assert (added.code, added.text) == (0, "added user alice for SCRAM-SHA-256\n")
        listed = command("user", "list", "--json", *where, *shown("alice", "pw of alice", "SCRAM-SHA-256"))
        assert listed.json == [
            {"user": "admin", "mechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-512"]},
            {"user": "alice", "mechanisms": ["SCRAM-SHA-256"]},
        ]
        assert command("user", "add", "alice", *as_admin).code == 2
        assert command("user", "password", "alice", *as_admin, stdin=b"another\n").code == 0
        refused = command("user", "list", *where, *shown("alice", "pw of alice", "SCRAM-SHA-256"))
        assert (refused.code, "invalid credentials" in refused.err) == (1, True)
        assert command("user", "list", *where, *shown("alice", "another", "SCRAM-SHA-256")).code == 0
        assert command("user", "delete", "alice", "nobody", *as_admin).code == 1
        assert command("user", "list", *where, *shown("alice", "another", "SCRAM-SHA-256")).code == 1
        assert "geheim" not in broker.log
        busy = command("user", "list", "--data-dir", folder)
        assert (busy.code, "a broker is running" in busy.err) == (2, True)


def test_users_of_a_folder_without_a_broker(command: Command, tmp_path: Path) -> None:
    place = ["--data-dir", tmp_path]
    assert command("user", "list", *place).err == "no users\n"
    assert command("user", "add", "bob", *place, stdin=b"x\n").code == 0
    assert command("user", "password", "bob", *place, "--mechanism", "SCRAM-SHA-256", stdin=b"y\n").code == 0
    assert command("user", "delete", "bob", *place, "--mechanism", "SCRAM-SHA-256").code == 0
    assert command("user", "list", *place).lines[1:] == ["bob   SCRAM-SHA-512"]
    assert command("user", "delete", "bob", *place).code == 0
    assert command("user", "list", *place).err == "no users\n"


class OfKafka:
    """Answers as Apache Kafka does: a user may stand once in a request, whatever the mechanism."""

    def __init__(self) -> None:
        self.altered: list[tuple[str, int]] = []

    def request(self, request: AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsResponse:
        changes = [(each.name, each.mechanism) for each in request.deletions]
        changes += [(each.name, each.mechanism) for each in request.upsertions]
        names = [name for name, _ in changes]
        refused = {name for name in names if names.count(name) > 1}
        self.altered += [change for change in changes if change[0] not in refused]
        results = [AlterUserScramCredentialsResult(user=name, error_code=92 * (name in refused)) for name in dict.fromkeys(names)]
        return AlterUserScramCredentialsResponse(results=results)


def test_a_user_is_altered_once_in_a_request() -> None:
    kafka = OfKafka()
    users = _Running(kafka)
    users.alter([], upsertions("bob", ["SCRAM-SHA-256", "SCRAM-SHA-512"], "x", 4096))
    users.alter([Deletion("bob", 1), Deletion("ann", 2), Deletion("bob", 2)], [])
    assert kafka.altered == [("bob", 1), ("bob", 2), ("bob", 1), ("ann", 2), ("bob", 2)]
    with pytest.raises(Failure, match="user bob: DUPLICATE_RESOURCE"):
        users.alter([Deletion("bob", 1), Deletion("bob", 1)], [])


def test_what_cannot_be(command: Command, tmp_path: Path) -> None:
    assert command("user", "list", "-b", UNUSED).code == 1
    assert command("user", "list", "--data-dir", tmp_path, "--metadata", "zookeeper://a:1").code == 2
    assert command("user", "list", "--metadata", "nowhere").code == 2
    assert command("user", "password", "bob", "--data-dir", tmp_path, stdin=b"x\n").code == 2
    assert command("user", "add", "bob", "--data-dir", tmp_path, stdin=b"\n").code == 2
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(BadInput, match="cannot be read"):
            read_password(str(path))
