"""Checkpoints as a kill leaves them, written by the file manager that `session` sets: nothing is lost, nothing is there twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.pipelines import write_stream
from barnabas.pipelines.spark_session import CHECKPOINTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ANOTHER = "c2f7a54e-41f5-4a3b-93a5-6a9d6a1f5b52"


class Written:
    """One file of a checkpoint, and the steps in which its manager makes it: the name that it has at first, the file, its checksum."""

    def __init__(self, file: Path) -> None:
        self.file, self.crc = file, file.with_name(f".{file.name}.crc")
        self.first = file.with_name(f".{file.name}.{ANOTHER}.tmp")
        self.first_crc = file.with_name(f".{self.first.name}.crc")

    def before_rename(self, share: float = 1.0) -> None:
        """Killed when so much of it was written under its first name."""
        data = self.file.read_bytes()
        self.file.unlink()
        self.crc.unlink(missing_ok=True)
        self.first.write_bytes(data[: int(len(data) * share)])

    def before_checksum(self) -> None:
        """Killed when it was renamed, and its checksum was not."""
        self.crc.rename(self.first_crc)


def newest(folder: Path) -> Written:
    return Written(max((path for path in folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name)))


def test_a_kill_at_any_step_of_a_checkpoint_loses_nothing(
    spark: SparkSession,
    kafka_server: str,
    stream: Callable[..., DataFrame],
    load: Callable[..., DataFrame],
    produce: Callable[..., None],
    topic: Callable[..., str],
    tmp_path: Path,
) -> None:
    source, target = topic(), topic()
    assert {setting: spark.conf.get(setting) for setting in CHECKPOINTS} == CHECKPOINTS

    def run(*keys: str) -> None:
        produce(source, [(0, key.encode(), b"") for key in keys])
        counts = stream(subscribe=source, startingOffsets="earliest").groupBy("key").count()
        writer = write_stream(counts.selectExpr("key", "cast(`count` as string) as value")).outputMode("update")
        writer = writer.options(**{"kafka.bootstrap.servers": kafka_server, "topic": target})
        writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()

    run("a")
    newest(tmp_path / "commits").before_rename()
    run("a")
    newest(tmp_path / "commits").before_rename(share=0.5)
    run("a")
    newest(tmp_path / "commits").before_checksum()
    run("a")
    newest(tmp_path / "offsets").before_checksum()
    run("a")
    # the next batch was about to begin: its offsets are only in the file with the temporary name
    began = newest(tmp_path / "offsets")
    Written(began.file.with_name(str(int(began.file.name) + 1))).first.write_bytes(began.file.read_bytes()[:-5])
    run("a")
    rows = load(subscribe=target, kafka__isolation__level="read_committed").orderBy("offset").collect()
    assert [int(row.value) for row in rows] == [1, 2, 3, 4, 5, 6]
