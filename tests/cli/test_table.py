"""`barnabas table`."""

from __future__ import annotations

import builtins
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

from barnabas.cli import table_export, table_options
from barnabas.tables import declared, export, scan
from barnabas.tables.row_names import name_of
from barnabas.testing import Broker
from tests.cli.conftest import Command
from tests.tables.writing import BrokerWriter
from tests.waiting import wait_until

DECLARED = ("--format", "json", "--columns", "id bigint, name text, tags text[]", "--key", "text")
LINES = b"".join(
    b"%s:%s\n" % (key, json.dumps({"id": number, "name": name, "tags": ["a"] if number % 2 else None}).encode())
    for number, (key, name) in enumerate([(b"k1", "ann"), (b"k2", "bob"), (b"k1", "eve"), (b"k3", "zoë")])
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def run(command: Command, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
    return command


@pytest.fixture
def orders(run: Command, name: str) -> str:
    """A topic of four records."""
    assert run("topic", "create", name).code == 0
    assert run("produce", name, "-K", ":", stdin=LINES).code == 0
    return name


def test_list_and_describe(run: Command, orders: str) -> None:
    assert [orders, "1", "4"] in [line.split() for line in run("table", "list").lines]
    assert {"topic": orders, "partitions": 1, "offsets": 4} in run("table", "list", "--json").json
    found = run("table", "describe", orders, *DECLARED)
    assert [line.split() for line in found.lines] == [
        ["COLUMN", "TYPE"],
        ["id", "bigint"],
        ["name", "text"],
        ["tags", "text[]"],
        ["_key", "text"],
        ["_partition", "int"],
        ["_offset", "bigint"],
        ["_timestamp", "timestamptz"],
        [],
        ["PARTITION", "FIRST", "LAST"],
        ["0", "0", "3"],
    ]
    assert run("table", "describe", orders, "--json").json["partitions"] == [{"partition": 0, "first": 0, "last": 3}]


def test_inferred_columns_fit_the_topic(run: Command, orders: str) -> None:
    inferred = run("table", "infer", orders)
    assert inferred.text == "id bigint, name text, tags text[]\n"
    rows = run("table", "head", orders, "--format", "json", "--columns", inferred.text.strip(), "--select", "name", "--json").json
    assert [each["name"] for each in rows] == ["ann", "bob", "eve", "zoë"]
    assert run("table", "infer", orders, "--sample", 1, "--json").json["columns"][0] == {"column": "id", "type": "bigint"}


def test_head(run: Command, orders: str) -> None:
    assert run("table", "head", orders, "-n", 2, *DECLARED, "--select", "id, upper(name) as n, tags").lines == [
        "id  n    tags", " 0  ANN  -", ' 1  BOB  ["a"]'
    ]  # fmt: skip
    rows = run("table", "head", orders, *DECLARED, "--json", "--where", "name > 'b'", "--select", "name").json
    assert rows == [{"name": "bob"}, {"name": "eve"}, {"name": "zoë"}]
    assert run("table", "head", orders, "-n", 1, "--json").json[0]["value"] == LINES.split(b"\n")[0][3:].decode()


def test_the_newest_rows(run: Command, orders: str) -> None:
    found = run("table", "head", orders, "--newest", *DECLARED, "--select", "_key, id", "--json").json
    assert found == [{"_key": "k2", "id": 1}, {"_key": "k1", "id": 2}, {"_key": "k3", "id": 3}]
    assert run("table", "count", orders, "--newest").text == "3\n"
    assert run("table", "count", orders, "--newest", *DECLARED, "--where", "name = 'ann'").text == "0\n"


def test_rows_with_names(run: Command, orders: str, broker: Broker) -> None:
    with closing(BrokerWriter(broker.bootstrap_servers)) as writer:
        writer.append(orders, 0, [(name_of(None, 0, 0), b'{"id": 9}'), (name_of(None, 0, 1), None)])
    named = ("--format", "json", "--columns", "id bigint", "--key", "row")
    expected = [{"_row": "0:2", "id": 2}, {"_row": "0:3", "id": 3}, {"_row": "0:0", "id": 9}]
    for place in ((), ("--data-folder", broker.data_dir)):
        assert run("table", "head", orders, *place, *named, "--select", "_row, id", "--json").json == expected
        assert run("table", "count", orders, *place, *named).text == "3\n"
    assert run("table", "head", orders, *named, "--select", "id", "--where", "_row = '0:0'").lines == ["id", " 9"]
    assert run("table", "describe", orders, *named, "--json").code == 0


def test_count_says_what_was_read(run: Command, orders: str) -> None:
    assert run("table", "count", orders).text == "4\n"
    found = run("table", "count", orders, "--where", "_offset >= 3", "--explain")
    assert found.text == "1\n"
    assert "pushed down: _offset >= 3" in found.err
    assert "offsets: 1 of 4 to read" in found.err
    assert run("table", "count", orders, "--json").json == {"topic": orders, "rows": 4}


def test_a_data_folder(run: Command, orders: str, broker: Broker) -> None:
    folder = ("--data-folder", broker.data_dir)
    assert run("table", "count", orders, *folder).text == "4\n"
    assert {"topic": orders, "partitions": 1, "offsets": 4} in run("table", "list", *folder, "--json").json
    assert run("table", "head", orders, *folder, "-n", 1, "--select", "_offset").lines == ["_offset", "      0"]


def test_export_to_each_format(run: Command, orders: str, tmp_path: Path) -> None:
    for ending in ("parquet", "csv", "jsonl", "arrow"):
        file = tmp_path / f"rows.{ending}"
        ended = run("table", "export", orders, file, *DECLARED, "--select", "id, name, tags, _key")
        assert (ended.code, ended.text) == (0, f"wrote 4 rows to {file}\n")
    expected = {"id": [0, 1, 2, 3], "name": ["ann", "bob", "eve", "zoë"], "tags": [None, ["a"], None, ["a"]]}
    keys = {"_key": ["k1", "k2", "k1", "k3"]}
    assert pq.read_table(tmp_path / "rows.parquet").to_pydict() == expected | keys
    assert pa.ipc.open_file(str(tmp_path / "rows.arrow")).read_all().to_pydict() == expected | keys
    lines = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert pa.Table.from_pylist(lines).to_pydict() == expected | keys
    assert arrow_csv.read_csv(tmp_path / "rows.csv")["tags"].to_pylist() == ["", '["a"]', "", '["a"]']
    assert sorted(each.name for each in tmp_path.iterdir()) == ["rows.arrow", "rows.csv", "rows.jsonl", "rows.parquet"]


def test_export_to_standard_output(run: Command, orders: str) -> None:
    ended = run("table", "export", orders, "-", "--to", "csv", "-n", 2, *DECLARED, "--select", "id, name")
    assert (ended.code, ended.text) == (0, '"id","name"\n0,"ann"\n1,"bob"\n')


def test_bytes_that_are_no_text(run: Command, name: str, tmp_path: Path) -> None:
    assert run("produce", name, "--format", "hex", stdin=b"61\nff00\n").code == 0
    assert [each["value_base64"] if "value_base64" in each else each["value"] for each in run("table", "head", name, "--json").json] == [
        "a", "/wA="
    ]  # fmt: skip
    assert run("table", "export", name, tmp_path / "rows.csv", "--select", "value").code == 0
    assert (tmp_path / "rows.csv").read_bytes() == b'"value"\n"a"\n"\\xff\x00"\n'


WRONG: list[tuple[Sequence[str], str]] = [
    (["head", "TOPIC", "--where", "nope = 1"], 'column "nope" not found'),
    (["head", "TOPIC", "--where", "("], "syntax error"),
    (["head", "TOPIC", "--select", "1 +"], "syntax error"),
    (["head", "TOPIC", "--format", "json", "--columns", "id"], "the declaration of columns has its end"),
    (["head", "TOPIC", "--columns", "id int"], "only json takes declared columns"),
    (["head", "absent"], "there is no topic absent"),
    (["count", "TOPIC", "--data-folder", "/nope"], "there is no data folder /nope"),
    (["count", "TOPIC", "--data-folder", "/nope", "-b", "127.0.0.1:1"], "not from both"),
    (["export", "TOPIC", "x.unknown"], "the ending of x.unknown names no format"),
    (["export", "TOPIC", "/nope/x.csv"], "cannot write /nope/x.csv: No such file or directory"),
    (["export", "TOPIC", "-"], "the ending of - names no format"),
    (["export", "TOPIC", "/tmp"], "is a directory"),
]


@pytest.mark.parametrize(("arguments", "text"), WRONG)
def test_wrong_input_is_one_line(run: Command, orders: str, arguments: Sequence[str], text: str) -> None:
    ended = run("table", *(orders if each == "TOPIC" else each for each in arguments))
    assert (ended.code, ended.out) == (2, b"")
    assert text in ended.err
    assert ended.err.count("\n") == 1


def test_a_cluster_that_is_not_there(command: Command) -> None:
    ended = command("table", "count", "orders", "-b", "127.0.0.1:1")
    assert ended.code == 1
    assert "cannot reach 127.0.0.1:1" in ended.err


def test_missing_libraries_are_one_line(run: Command, orders: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith("barnabas.tables")]:
        monkeypatch.delitem(sys.modules, name)
    imported = builtins.__import__

    def without(name: str, *arguments: Any, **others: Any) -> Any:
        if name == "pyarrow" or name.startswith("pyarrow."):
            raise ModuleNotFoundError(f"No module named {name!r}", name="pyarrow")
        return imported(name, *arguments, **others)

    monkeypatch.setattr(builtins, "__import__", without)
    ended = run("table", "head", orders)
    assert (ended.code, ended.err) == (
        1, "barnabas: pyarrow is not installed; `pip install 'barnabas[tables]'` installs what tables need\n"
    )  # fmt: skip


def test_a_failed_export_keeps_the_older_file(run: Command, orders: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("older")
    ended = run("table", "export", orders, file, *DECLARED, "--select", "id, error('stop here') as stop")
    assert ended.code == 2
    assert "stop here" in ended.err

    def interrupted(*_: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(table_export, "_shown", interrupted)
    ended = run("table", "export", orders, file)
    assert (ended.code, ended.err) == (1, "barnabas: interrupted\n")
    assert ([each.name for each in tmp_path.iterdir()], file.read_text()) == (["rows.csv"], "older")


def test_ctrl_c_leaves_no_half_file(orders: str, broker: Broker, tmp_path: Path) -> None:
    """An export that takes much longer than the test needs to see its file."""
    arguments = ["table", "export", orders, str(tmp_path / "rows.json"), "--select", "unnest(range(1000000)) as number"]
    command = [sys.executable, "-m", "barnabas.cli", *arguments, "-b", broker.bootstrap_servers]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: list(tmp_path.iterdir()), "the hidden file")
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, err, list(tmp_path.iterdir())) == (1, "barnabas: interrupted\n", [])


def test_a_progress_bar_shows_on_a_terminal(run: Command, orders: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[int] = []
    monkeypatch.setattr(table_export, "_progress", lambda total: _Recorded(shown, total))
    assert run("table", "export", orders, tmp_path / "rows.csv").code == 0
    assert shown == [4, 4]


class _Recorded:
    def __init__(self, shown: list[int], total: int) -> None:
        self.shown = shown
        shown.append(total)

    def __enter__(self) -> Any:
        return self.shown.append

    def __exit__(self, *_: object) -> None:
        pass


def test_the_words_of_options_are_those_of_tables() -> None:
    """The command line names them itself, so that it starts without the libraries of tables."""
    assert (table_options.FORMATS, table_options.MODES) == (declared.FORMATS, scan.MODES)
    assert table_export.FORMATS == export.FORMATS
