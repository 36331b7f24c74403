"""`barnabas start --secure`: nobody gets in who was not let in."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from barnabas.cli.broker import collect_properties
from barnabas.cli.errors import BadInput
from barnabas.cli.secure import secure
from barnabas.testing import Broker
from tests.cli.conftest import Command


def properties(folder: Path, *pairs: str) -> dict[str, str]:
    return collect_properties(
        data_dir=str(folder), listeners="SASL_SSL://127.0.0.1:0", pairs=pairs, config_file=None, broker_id=None
    )


def test_the_first_start_makes_all_that_is_needed_and_the_next_one_takes_it(command: Command, tmp_path: Path) -> None:
    data = tmp_path / "data"
    settings = properties(data)
    admin = secure(settings)
    assert stat.S_IMODE(admin.stat().st_mode) == 0o600
    made = {path.name: path.read_bytes() for path in admin.parent.iterdir()}
    assert settings["delegation.token.secret.key"].encode() == made["token.key"]
    assert stat.S_IMODE((admin.parent / "token.key").stat().st_mode) == 0o600
    again = properties(data)
    assert (secure(again), again) == (admin, settings)
    assert {path.name: path.read_bytes() for path in admin.parent.iterdir()} == made
    del settings["log.dirs"]
    with Broker(settings, data_dir=data) as broker:
        place = ("-b", broker.bootstrap_servers)
        as_admin = (*place, "--command-config", admin)
        assert command("topic", "create", "t", *as_admin).code == 0
        assert command("produce", "t", *as_admin, stdin=b"hello\n").code == 0
        assert command("user", "add", "alice", *as_admin, stdin=b"geheim\n").code == 0
        alice = tmp_path / "alice.properties"
        password = next(line for line in admin.read_text().splitlines() if "jaas" in line).split('"')[3]
        alice.write_text(admin.read_text().replace('"admin"', '"alice"').replace(password, "geheim"))
        as_alice = (*place, "--command-config", alice)
        reading = ("consume", "t", "--from", "earliest", *as_alice)
        assert command(*reading).code == 1
        assert command("acl", "add", "--principal", "User:alice", "--operation", "read", "--topic", "t", *as_admin).code == 0
        read = command(*reading)
        assert read.out == b"hello\n", read.err
        for more in ((), ("--idempotence",)):
            refused = command("produce", "t", *as_alice, *more, stdin=b"no\n")
            assert (refused.code, "AUTHORIZATION_FAILED" in refused.err) == (1, True), refused.err
        assert password not in broker.log
        with pytest.raises(Exception, match="Failed to get metadata"):
            AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}).list_topics(timeout=1)


def test_a_first_start_that_was_killed_is_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    for killed_at in ("certify_broker", "_make_admin"):
        with monkeypatch.context() as patched:
            patched.setattr(f"barnabas.cli.secure.{killed_at}", _killed)
            with pytest.raises(KeyboardInterrupt):
                secure(properties(data))
    admin = secure(properties(data))
    assert admin.exists()
    assert (admin.parent / "broker.pem").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"data", "data-security"}


def _killed(*arguments: object) -> None:
    """Kill the command; its unfinished files stay."""
    for each in arguments:
        if isinstance(each, Path):
            each.mkdir(exist_ok=True)
            (each / "store.password").write_text("half")
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"listeners": "SASL_SSL://a:1,PLAINTEXT://b:2"}, "PLAINTEXT://b:2"),
        ({"zookeeper.connect": "a:1"}, "stands alone"),
    ],
)
def test_what_would_leave_a_door_open_is_refused(tmp_path: Path, change: dict[str, str], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        secure({**properties(tmp_path / "data"), **change})
    assert not list(tmp_path.iterdir())


def test_the_folder_may_have_any_name_that_log_dirs_can_have(command: Command, tmp_path: Path) -> None:
    data = tmp_path / "ü \\#=:!$'"
    settings = properties(data)
    admin = secure(settings)
    del settings["log.dirs"]
    with Broker(settings, data_dir=data) as broker:
        assert command("topic", "create", "t", "-b", broker.bootstrap_servers, "--command-config", admin).code == 0
    assert sorted(tmp_path.iterdir()) == sorted([data, admin.parent])
