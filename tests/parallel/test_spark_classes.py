"""The archive of Spark's classes is for one Java and one set of jars, and options name it only if it is there."""

from __future__ import annotations

import os
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from tests.parallel import spark_classes
from tests.parallel.spark_classes import FOR_SHORT_RUNS, archive, java_options


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A jar of a pyspark in `tmp_path`, which has a Java, too, and the archives."""
    (tmp_path / "java").touch()
    (tmp_path / "jars").mkdir()
    (made := tmp_path / "jars" / "core.jar").touch()
    monkeypatch.setattr(spark_classes, "CACHE", tmp_path)
    monkeypatch.setattr("shutil.which", lambda _: str(tmp_path / "java"))
    monkeypatch.setattr(spark_classes, "find_spec", lambda name: ModuleSpec(name, None, origin=str(tmp_path / "__init__.py")))
    return made


def test_options_name_the_archive_only_if_it_is_there(jar: Path) -> None:
    path = archive()
    assert path is not None
    assert java_options() == FOR_SHORT_RUNS
    path.touch()
    assert java_options() == f"{FOR_SHORT_RUNS} -XX:SharedArchiveFile={path}"


def test_other_jars_and_another_java_have_another_archive(jar: Path) -> None:
    seen = [archive()]
    for changed in (jar, jar.parents[1] / "java"):
        os.utime(changed, ns=(0, len(seen)))
        seen.append(archive())
    jar.with_name("sql.jar").touch()
    assert len({*seen, archive()}) == 4


def test_there_is_none_without_java_or_spark(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_classes, "find_spec", lambda _: None)
    assert archive() is None
    monkeypatch.undo()
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert archive() is None
    assert java_options() == FOR_SHORT_RUNS
