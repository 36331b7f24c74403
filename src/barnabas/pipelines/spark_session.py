"""`session`: a Spark session that finds this Python, and is set up for streams of topics.

    spark = barnabas.pipelines.session("flights")

What it sets beyond Spark's defaults, and why, is in `docs/spark.md`. `local_settings` and `SETTINGS` are for programs of ours that make
their session in another way.

Rules
  1. What the caller gives counts most, then what the command line of `spark-submit`, `pyspark` or `barnabas pipeline run` gives and what
     spark-defaults.conf says, then what is set here.
  2. Spark starts Python processes of its own, by the command in PYSPARK_PYTHON, else `python3` of the PATH, which need not have
     barnabas. A command that the environment names is left as it is, since on a cluster it names a Python of the workers.
  3. What only suits one machine (loopback addresses, the checkpoint's file manager, few shuffle partitions) is set where the master is
     local and nowhere else.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.pipelines import interpreter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)
STATIC = "spark.python.daemon.module"  # cannot be set in a session that is there
SETTINGS = {
    STATIC: "barnabas.pipelines.daemon",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",  # else each micro-batch writes a snapshot
    "spark.ui.showConsoleProgress": "false",
}
CHECKPOINTS = {  # the other manager forks a process for each file's rights, where Hadoop's native library is not installed
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
ADDRESS = "SPARK_LOCAL_IP"  # of what Spark binds to; it warns about names that mean a loopback address where this is not set
WORKERS, DRIVERS = "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"
LOCAL = re.compile(r"local(?:\[\s*(\d+|\*)\s*(?:,.*)?\])?")  # not local-cluster, which starts executors of its own


def session(
    name: str = "barnabas", *, master: str | None = None, ui: bool = False, conf: Mapping[str, Any] | None = None
) -> SparkSession:
    """A session with this Python in its workers; the one that is there already, if there is one.

    Args:
        master: as Spark writes it; all cores of this machine where neither this nor the command line names one.
        ui: whether Spark's web pages are served, on port 4040.
        conf: settings of Spark by their names, which go before those made here.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    given = {setting: _text(value) for setting, value in (conf or {}).items()}
    if master is not None:
        given["spark.master"] = master
    use_this_python()
    there = submitted()
    where = given.get("spark.master") or there.get("spark.master") or "local[*]"
    wanted = {"spark.app.name": name, "spark.master": where, "spark.ui.enabled": _text(ui), **SETTINGS}
    if is_local(where):
        os.environ.setdefault(ADDRESS, "127.0.0.1")
        wanted |= local_settings(where)
    settings = {setting: value for setting, value in wanted.items() if setting not in there} | given
    builder = SparkSession.builder
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    existing = SparkContext._active_spark_context
    if existing is not None and existing.getConf().get(STATIC) != settings.get(STATIC, there.get(STATIC)):
        logger.warning(
            "event=session-was-there note='it keeps its static settings: make the session here, before anything else does'"
        )
    return builder.getOrCreate()


def use_this_python() -> None:
    """Have the processes that Spark starts from here run this Python.

    The driver's processes always do: the driver is this Python, whatever started it (a notebook's command is no Python). Those of the
    executors do where PYSPARK_PYTHON is not set.
    """
    os.environ.setdefault(WORKERS, interpreter.command())
    os.environ[DRIVERS] = interpreter.command()


def local_settings(master: str) -> dict[str, str]:
    """What is set where driver, executors and checkpoints are on this machine."""
    return {**LOOPBACK, **CHECKPOINTS, "spark.sql.shuffle.partitions": str(_cores(master))}


def is_local(master: str) -> bool:
    """Whether driver and executors are one process of this machine."""
    return LOCAL.fullmatch(master) is not None


def _cores(master: str) -> int:
    found = LOCAL.fullmatch(master)
    cores = found[1] if found else None
    if cores is None:
        return 1
    return os.cpu_count() or 1 if cores == "*" else int(cores)


def submitted() -> dict[str, str]:
    """The settings that are there before a session is made: of the command line that started this process, or will start the JVM."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has started the JVM, and this process
        from pyspark import SparkConf

        return dict(SparkConf().getAll())
    found = _of_file()
    words = iter(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))
    for word in words:
        option, is_joined, value = word.partition("=")
        if option == "--conf":
            setting, _, value = (value if is_joined else next(words, "")).partition("=")
            found[setting] = value
        elif option in ("--master", "--name"):
            found["spark.master" if option == "--master" else "spark.app.name"] = value if is_joined else next(words, "")
    return found


def _of_file() -> dict[str, str]:
    """What spark-defaults.conf says, where this environment has one."""
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (os.path.join(home, "conf") if home else None)
    try:
        text = Path(folder, "spark-defaults.conf").read_text() if folder else ""
    except OSError:
        return {}
    lines = (re.split(r"[\s=:]+", line.strip(), maxsplit=1) for line in text.splitlines())
    return {line[0]: line[1] for line in lines if len(line) == 2 and line[0].startswith("spark.")}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
