"""`session`: a Spark session whose processes use this Python, with settings for streams of topics.

    spark = barnabas.pipelines.session("flights")

`docs/spark.md` explains the settings that differ from Spark's defaults. `local_settings` and `SETTINGS` are for programs of
barnabas that create their session in another way.

Rules
  1. The caller's settings override those of the command line (`spark-submit`, `pyspark` or `barnabas pipeline run`) and of
     spark-defaults.conf. These override the settings of this module.
  2. Spark starts Python processes with the command in PYSPARK_PYTHON. Without it, Spark uses `python3` of the PATH, which may
     not have barnabas. This module does not change the variable if it is set, since on a cluster it is the Python of the
     workers.
  3. Settings for one machine (loopback addresses, the checkpoint's file manager, few shuffle partitions) are made only if the
     master is local.
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
STATIC = "spark.python.daemon.module"  # an existing session does not accept this setting
SETTINGS = {
    STATIC: "barnabas.pipelines.daemon",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    # otherwise each micro-batch writes a snapshot
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}
# without Hadoop's native library, the default manager starts a process for each file to set its permissions
CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
ADDRESS = "SPARK_LOCAL_IP"  # Spark's bind address; without it, Spark warns if the host name resolves to a loopback address
WORKERS, DRIVERS = "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"
LOCAL = re.compile(r"local(?:\[\s*(\d+|\*)\s*(?:,.*)?\])?")  # does not match local-cluster, which starts separate executors


def session(
    name: str = "barnabas", *, master: str | None = None, ui: bool = False, conf: Mapping[str, Any] | None = None
) -> SparkSession:
    """A session with this Python in its workers; an existing session is returned.

    Args:
        master: in Spark's notation; all cores of this machine if neither this argument nor the command line names one.
        ui: whether Spark's web pages are served, on port 4040.
        conf: Spark settings by name, which override those of this module.
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
            "event=session-was-there note='it keeps its static settings: create the session by "
            "this function, before other code creates one'"
        )
    return builder.getOrCreate()


def has_session() -> bool:
    """Whether this process has a session."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def use_this_python() -> None:
    """Make the processes that Spark starts run this Python.

    The driver's processes always do, independent of the command that started the driver (a notebook's command is not a Python).
    The executors' processes do if PYSPARK_PYTHON is not set.
    """
    os.environ.setdefault(WORKERS, interpreter.command())
    os.environ[DRIVERS] = interpreter.command()


def local_settings(master: str) -> dict[str, str]:
    """The settings for driver, executors and checkpoints on this machine."""
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
    """The settings that exist before the session: those of the command line that started this process, or that will start the
    JVM."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has started both the JVM and this process
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
    """The settings of spark-defaults.conf, if this environment has one."""
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
