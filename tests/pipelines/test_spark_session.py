"""The settings of `session`, and the settings that override them; that programs find barnabas by it is run by tests/docs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.pipelines import interpreter, session, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ("pyspark-shell", {}),
        ("--master local[3] --name job pyspark-shell", {"spark.master": "local[3]", "spark.app.name": "job"}),
        (
            "--master=yarn --conf spark.a=1=2 --conf=spark.b='x y' pyspark-shell",
            {"spark.master": "yarn", "spark.a": "1=2", "spark.b": "x y"},
        ),
    ],
)
def test_the_command_line_is_read(monkeypatch: pytest.MonkeyPatch, words: str, settings: dict[str, str]) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", words)
    assert spark_session.submitted() == settings


def test_the_file_of_defaults_is_read_and_comes_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("# spark.x 1\nspark.a   one\nspark.b=two words\n\nspark.master local[4]\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master local[2] pyspark-shell")
    assert spark_session.submitted() == {"spark.a": "one", "spark.b": "two words", "spark.master": "local[2]"}


@pytest.mark.parametrize(
    ("master", "is_local", "partitions"),
    [
        ("local", True, "1"),
        ("local[3]", True, "3"),
        ("local[2,4]", True, "2"),
        ("local-cluster[2,1,1024]", False, ""),
        ("yarn", False, ""),
    ],
)
def test_what_is_local(master: str, is_local: bool, partitions: str) -> None:
    assert spark_session.is_local(master) is is_local
    if is_local:
        assert spark_session.local_settings(master)["spark.sql.shuffle.partitions"] == partitions


def test_the_driver_runs_this_python_and_workers_what_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(spark_session.WORKERS, "/env/bin/python")
    monkeypatch.setenv(spark_session.DRIVERS, "jupyter")
    spark_session.use_this_python()
    assert os.environ[spark_session.WORKERS] == "/env/bin/python"
    assert os.environ[spark_session.DRIVERS] == interpreter.command()
    monkeypatch.delenv(spark_session.WORKERS)
    spark_session.use_this_python()
    assert os.environ[spark_session.WORKERS] == interpreter.command()


@pytest.mark.spark
def test_settings_of_the_caller_go_before_all(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert {name: spark.conf.get(name) for name in spark_session.SETTINGS} == spark_session.SETTINGS
    again = session("again", master="local[2]", conf={"spark.sql.session.timeZone": "UTC", spark_session.STATIC: "other.daemon"})
    assert again.sparkContext is spark.sparkContext
    assert "event=session-was-there" in caplog.text
