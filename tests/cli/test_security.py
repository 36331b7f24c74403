"""`barnabas security certificates`: its files work for a broker and its clients, and it overwrites nothing."""

from __future__ import annotations

import stat
from pathlib import Path

from barnabas.testing import Broker
from tests.cli.conftest import Command


def test_certificates_do_for_a_broker_and_the_commands(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    made = command(
        "security", "certificates", "--out", folder, "--hosts", "localhost,127.0.0.1", "--clients", "alice,bob", "--json"
    )
    assert (made.code, [row["name"] for row in made.json]) == (0, ["broker", "alice", "bob"])
    private = [path for path in folder.iterdir() if path.suffix in {".key", ".pem", ".password"} or path.name == "alice.p12"]
    assert len(private) == 9
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
    password = (folder / "store.password").read_text().strip()
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.location": str(folder / "broker.p12"),
        "ssl.keystore.password": password,
        "ssl.truststore.location": str(folder / "truststore.p12"),
        "ssl.truststore.password": password,
        "ssl.client.auth": "required",
    }
    java = {**settings, "security.protocol": "SSL", "ssl.keystore.location": str(folder / "alice.p12")}
    del java["listeners"]
    (tmp_path / "client.properties").write_text("".join(f"{key}={value}\n" for key, value in java.items() if "auth" not in key))
    files = {"ssl.ca.location": "ca.crt", "ssl.certificate.location": "bob.crt", "ssl.key.location": "bob.key"}
    options = [f"{key}={folder / name}" for key, name in files.items()]
    with Broker(settings) as broker:
        at = ("-b", broker.bootstrap_servers)
        assert command("topic", "create", "t", *at, "--command-config", tmp_path / "client.properties").code == 0
        by_librdkafka = [part for option in ["security.protocol=ssl", *options] for part in ("-X", option)]
        assert b"t" in command("topic", "list", *at, *by_librdkafka).out.split()
        versions = command("cluster", "api-versions", *at, *by_librdkafka)
        assert versions.code == 0, versions.err
        assert command("topic", "list", *at, "-X", "security.protocol=ssl", "-X", options[0], "--timeout", "3").code == 1


def test_the_authority_signs_more_and_nothing_is_overwritten(command: Command, tmp_path: Path) -> None:
    def make(*options: str) -> tuple[int, str]:
        done = command("security", "certificates", "--out", tmp_path / "c", *options)
        return done.code, done.err

    assert make()[0] == 0
    authority = (tmp_path / "c" / "ca.crt").read_bytes()
    assert make("--clients", "carol")[0] == 0
    assert (tmp_path / "c" / "ca.crt").read_bytes() == authority
    for options, said in (
        (["--clients", "carol"], "nothing is overwritten"),
        (["--hosts", "elsewhere"], "nothing is overwritten"),
        ([], "--hosts or --clients"),
        (["--clients", "../carol"], "not a valid name"),
        (["--clients", "broker"], "brokers' certificate"),
        (["--hosts", "a b"], "not a valid name"),
        (["--days", "0"], "days"),
    ):
        code, error = make(*options)
        assert (code, said in error) == (2, True), error
