"""The Spark session of the demo: small, on this machine only, with few log lines, and without leftovers.

Settings for two cores: two shuffle partitions (one task for each core); only the JIT's first tier (the run is too short to gain
from the second); and Spark's in-memory state store. With the whole year in one micro-batch, the updates of the join took 4.8 s
in this store and 10.0 s in RocksDB. The state is small, a week of flights.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from barnabas.pipelines import session
from barnabas.pipelines.spark_session import ADDRESS, local_settings, use_this_python
from demo.data import DemoError

MASTER = "local[2]"
STATE = "spark.sql.streaming.stateStore.providerClass"
IN_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LOG_SETTINGS = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {path}
appender.file.append = false
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""


def open_session(work: Path) -> SparkSession:
    """A session whose log is `work`/spark.log. The standard error of its processes goes to `work`/spark.err.

    Raises:
        DemoError: Java did not start.
    """
    work.mkdir(parents=True, exist_ok=True)
    log_settings = work / "log4j2.properties"
    log_settings.write_text(LOG_SETTINGS.format(path=work / "spark.log"))
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} -Dlog4j2.configurationFile={log_settings.as_uri()}",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        STATE: IN_MEMORY,
    }
    use_this_python()
    os.environ.setdefault(ADDRESS, "127.0.0.1")
    conf = SparkConf(loadDefaults=False).setMaster(MASTER).setAll([*local_settings(MASTER).items(), *settings.items()])
    _launch_java(conf, work / "spark.err")
    return session("barnabas demo", master=MASTER, conf=settings)


def _launch_java(conf: SparkConf, errors: Path) -> None:
    """Start the JVM that the session will find. It does not get the terminal's signals, so that it can be stopped cleanly.

    It ends by itself at the end of its standard input, which comes when this process ends for any reason.
    """
    with errors.open("wb") as output:
        try:
            SparkContext._gateway = launch_gateway(conf, {"start_new_session": True, "stderr": output})
        except PySparkRuntimeError as error:
            raise DemoError(f"Spark did not start (is there a Java 17 or later?): {errors.read_text()[-2000:]}") from error
    SparkContext._jvm = SparkContext._gateway.jvm


def close_session(spark: SparkSession) -> None:
    """Stop Spark and wait until its JVM is gone, so that nothing is left when the command returns."""
    gateway = SparkContext._gateway
    spark.stop()
    if gateway is None:
        return
    gateway.shutdown()
    java = getattr(gateway, "proc", None)
    if java is not None:
        java.stdin.close()
        java.wait()
    SparkContext._gateway = None
    SparkContext._jvm = None


@contextmanager
def spark_session(work: Path) -> Iterator[SparkSession]:
    """A session that exists during the block."""
    spark = open_session(work)
    try:
        yield spark
    finally:
        close_session(spark)
