"""The shell against a secured cluster: the settings of --command-config are those of its session, and the user's rights count."""

from __future__ import annotations

from pathlib import Path

from barnabas.cli.broker import collect_properties
from barnabas.cli.secure import secure
from barnabas.testing import Broker
from tests.cli.conftest import Command


def test_statements_act_with_the_rights_of_the_user_of_the_settings(command: Command, tmp_path: Path) -> None:
    data = tmp_path / "data"
    settings = collect_properties(
        data_dir=str(data), listeners="SASL_SSL://127.0.0.1:0", pairs=(), config_file=None, broker_id=None
    )
    admin = secure(settings)
    del settings["log.dirs"]
    with Broker(settings, data_dir=data) as broker:
        place = ("-b", broker.bootstrap_servers)
        as_admin = (*place, "--command-config", admin)
        made = command(
            "sql", *as_admin, "-c", "create table t (a int primary key); insert into t values (1)", "-c", "select * from t"
        )
        assert made.text.endswith("CREATE TABLE\nINSERT 0 1\n a \n---\n 1\n(1 row)\n\n"), made.err
        assert command("sql", *as_admin, "--no-header", "-c", "select current_user").text == " admin\n"

        assert command("user", "add", "alice", *as_admin, stdin=b"geheim\n").code == 0
        alice = tmp_path / "alice.properties"
        password = next(line for line in admin.read_text().splitlines() if "jaas" in line).split('"')[3]
        alice.write_text(admin.read_text().replace('"admin"', '"alice"').replace(password, "geheim"))
        as_alice = (*place, "--command-config", alice)
        refused = command("sql", *as_alice, "-c", "select * from t")
        assert refused.code == 1
        assert "TOPIC_AUTHORIZATION_FAILED" in refused.err

        may_read = ("acl", "add", "--principal", "User:alice", "--operation", "read")
        assert command(*may_read, "--topic", "t", "--topic", "_barnabas_sql", *as_admin).code == 0
        read = command("sql", *as_alice, "--no-header", "-c", "select a, current_user from t")
        assert (read.text, read.err) == (" 1 | alice\n", "")
        writes = ("sql", *as_alice, "-c", "insert into t values (2)")
        assert "AUTHORIZATION_FAILED" in command(*writes).err
        may_write = ("acl", "add", "--principal", "User:alice", "--operation", "write")
        assert command(*may_write, "--topic", "t", *as_admin).code == 0
        assert command(*writes).text == "INSERT 0 1\n"

        wrong = command("sql", *as_alice, "-X", "sasl.password=wrong", "-c", "select * from t")
        assert wrong.code == 1
        assert wrong.err.startswith("ERROR:  no log-in at ")
        assert "wrong" not in wrong.err
