"""An archive of Spark's classes, with which a JVM of a test starts in half of the time.

Each JVM otherwise reads and checks thousands of classes from Spark's jars. `python -m tests.parallel` makes the archive before the
tests; pytest alone uses it if it is there. Java ignores an archive of other jars or of another Java.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".cache"
FOR_SHORT_RUNS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
OPTIONS = "SPARK_SUBMIT_OPTS"  # the variable with the options of a driver's JVM


def archive() -> Path | None:
    """Where the archive of this Java and this Spark is, or would be; None without either."""
    java, spark = shutil.which("java"), find_spec("pyspark")
    if java is None or spark is None or spark.origin is None:
        return None
    jars = Path(spark.origin).parent / "jars"
    made_from = [(str(path), path.stat().st_mtime_ns) for path in (Path(java).resolve(), *sorted(jars.iterdir()))]
    return CACHE / f"spark-{sha256(repr(made_from).encode()).hexdigest()[:16]}.jsa"


def java_options() -> str:
    path = archive()
    return f"{FOR_SHORT_RUNS} -XX:SharedArchiveFile={path}" if path is not None and path.exists() else FOR_SHORT_RUNS


def main() -> None:
    """Make the archive, unless it is there, by a batch and a stream that load what most tests load."""
    path = archive()
    if path is None or path.exists():
        return
    from demo.session import spark_session

    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        folder, made = Path(name), Path(name) / "made.jsa"
        os.environ[OPTIONS] = f"{FOR_SHORT_RUNS} -XX:ArchiveClassesAtExit={made} -Xlog:disable"
        with spark_session(folder / "work") as spark:
            spark.range(10).selectExpr("CAST(id AS STRING) AS value").write.text(f"{folder}/rows")
            counts = spark.readStream.text(f"{folder}/rows").groupBy("value").count()
            output = counts.writeStream.format("noop").outputMode("complete").option("checkpointLocation", f"{folder}/checkpoint")
            output.trigger(availableNow=True).start().awaitTermination()
        made.replace(path)


if __name__ == "__main__":
    main()
