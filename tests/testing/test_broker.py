"""The broker fixture: comes up on real sockets, keeps port and data over restarts, leaves nothing behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas.testing import Broker, BrokerFailed


def accepts(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_broker_accepts_connections_and_leaves_nothing_behind() -> None:
    with Broker() as kafka:
        address, folder, pid = kafka.bootstrap_servers, kafka.data_dir.parent, kafka.pid
        assert accepts(address)
        assert kafka.data_dir.is_dir()
        assert kafka.is_running()
    assert not accepts(address)
    assert not folder.exists()
    assert pid is not None
    assert not alive(pid)
    assert not kafka.is_running()


def test_nothing_is_left_when_the_block_raises() -> None:
    kafka = Broker()
    folder = kafka.data_dir.parent
    with pytest.raises(ZeroDivisionError), kafka:
        raise ZeroDivisionError
    assert kafka.pid is None
    assert not folder.exists()


def test_restart_keeps_the_port_and_the_data() -> None:
    with Broker() as kafka:
        address, pid = kafka.bootstrap_servers, kafka.pid
        (kafka.data_dir / "kept").write_text("x")
        kafka.restart()
        assert kafka.bootstrap_servers == address
        assert kafka.pid != pid
        assert (kafka.data_dir / "kept").exists()
        assert accepts(address)


def test_a_restart_binds_what_was_configured_and_not_what_is_advertised() -> None:
    config = {"listeners": "PLAINTEXT://127.0.0.1:0", "advertised.listeners": "PLAINTEXT://elsewhere.invalid:9"}
    with Broker(config) as kafka:
        assert kafka.bootstrap_servers == "elsewhere.invalid:9"
        kafka.restart()
        assert kafka.is_running()


def test_a_listener_everywhere_advertises_the_machine_s_name() -> None:
    with Broker({"listeners": "PLAINTEXT://0.0.0.0:0"}) as kafka:
        host, _, port = kafka.bootstrap_servers.rpartition(":")
        assert host == socket.getfqdn()
        kafka.restart()
        assert kafka.bootstrap_servers == f"{host}:{port}"
        assert accepts(f"127.0.0.1:{port}")


def test_a_killed_broker_can_be_started_again() -> None:
    with Broker() as kafka:
        address = kafka.bootstrap_servers
        kafka.kill()
        assert kafka.pid is None
        assert kafka.bootstrap_servers == address
        assert not accepts(address)
        kafka.start()
        assert kafka.start() is kafka
        assert accepts(address)


def test_a_data_folder_of_the_caller_stays(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "data") as kafka:
        assert kafka.data_dir == tmp_path / "data"
    assert (tmp_path / "data").is_dir()


def test_data_is_spread_over_several_folders(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "disk", log_dirs=3) as broker:
        assert broker.data_dirs == [tmp_path / "disk", tmp_path / "disk-2", tmp_path / "disk-3"]
        assert all((folder / "meta.properties").exists() for folder in broker.data_dirs)


def test_two_brokers_do_not_meet() -> None:
    with Broker() as one, Broker() as other:
        assert one.bootstrap_servers != other.bootstrap_servers
        assert one.data_dir != other.data_dir


def test_a_setting_that_is_refused_is_told_with_the_log() -> None:
    kafka = Broker({"num.partitions": "many"})
    folder = kafka.data_dir.parent
    with pytest.raises(BrokerFailed, match=r"num\.partitions"):
        kafka.start()
    assert not folder.exists()


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs a /proc")
def test_nobody_else_on_the_machine_sees_its_settings() -> None:
    with Broker({"delegation.token.secret.key": "geheim"}) as broker:
        assert b"geheim" not in Path(f"/proc/{broker.pid}/cmdline").read_bytes()


def test_the_address_is_unknown_before_the_first_start() -> None:
    with pytest.raises(RuntimeError, match="not started"):
        _ = Broker().bootstrap_servers


def test_the_broker_ends_with_a_parent_that_is_killed() -> None:
    program = "from barnabas.testing import Broker; b = Broker().start(); print(b.pid, b.data_dir, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid_text, data_dir = parent.stdout.readline().split()
        process = os.pidfd_open(int(pid_text))
        parent.kill()
    try:
        wait_for_exit(process)
        assert not Path(data_dir).parent.exists()
    finally:
        os.close(process)


def wait_for_exit(pidfd: int) -> None:
    import select

    ready, _, _ = select.select([pidfd], [], [], 20)
    assert ready, "the broker outlived its parent"


def test_the_fixture_gives_a_running_broker(kafka: Broker) -> None:
    assert accepts(kafka.bootstrap_servers)


def test_the_plugin_loads_nothing_of_ours_but_itself() -> None:
    program = (
        "import sys, pytest; before = set(sys.modules); import barnabas.testing.plugin; print(*sorted(set(sys.modules) - before))"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert set(output) <= {"barnabas", "barnabas.testing", "barnabas.testing.plugin"}


def test_a_folder_that_log_dirs_can_name_has_the_data_whatever_it_is_called(tmp_path: Path) -> None:
    folder = tmp_path / "ü 😀\\#=:!%$'\"\n?${env:HOME} -x"
    with Broker(data_dir=folder) as broker:
        assert broker.is_running()
        assert (folder / "metadata.db").is_file()
    assert list(tmp_path.iterdir()) == [folder]
    with pytest.raises(ConfigError, match="comma"):
        Broker(data_dir=tmp_path / "a,b")
