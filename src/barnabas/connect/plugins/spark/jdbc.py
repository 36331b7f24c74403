"""JDBC drivers in Spark: which class a url needs, and what to do if it is missing."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.connect.errors import ConnectError

JDBC, MARIADB = "jdbc", "jdbc:mariadb:"
MISSING = ("No suitable driver", "ClassNotFoundException")
PACKAGE = "an engine setting such as spark.jars=/opt/jars/postgresql.jar or spark.jars.packages=org.postgresql:postgresql:42.7.7"
DRIVERS = {  # Java finds no driver by itself in a jar that came with spark.jars
    "clickhouse": "com.clickhouse.jdbc.ClickHouseDriver",
    "databricks": "com.databricks.client.jdbc.Driver",
    "db2": "com.ibm.db2.jcc.DB2Driver",
    "duckdb": "org.duckdb.DuckDBDriver",
    "h2": "org.h2.Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "oracle": "oracle.jdbc.OracleDriver",
    "postgresql": "org.postgresql.Driver",
    "redshift": "com.amazon.redshift.jdbc.Driver",
    "snowflake": "net.snowflake.client.jdbc.SnowflakeDriver",
    "sqlite": "org.sqlite.JDBC",
    "sqlserver": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
    "teradata": "com.teradata.jdbc.TeraDriver",
    "trino": "io.trino.jdbc.TrinoDriver",
}


def option(options: Mapping[str, str], wanted: str) -> str:
    """The value of an option of Spark, whose names have no case; empty if it is not given."""
    return next((value for name, value in options.items() if name.lower() == wanted), "")


def with_driver(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options of a format, with the class of the driver if it is `jdbc`."""
    url = option(options, "url")
    parts = url.split(":")
    if kind.lower() != JDBC or len(parts) < 2:
        return dict(options)
    found = dict(options)
    if parts[1] in DRIVERS and not option(options, "driver"):
        found["driver"] = DRIVERS[parts[1]]
    if url.startswith(MARIADB):
        # Spark has no dialect for it, and would quote names as MariaDB quotes texts
        for name in [each for each in found if each.lower() == "url"]:
            found[name] = f"jdbc:mysql:{url.removeprefix(MARIADB)}{'&' if '?' in url else '?'}permitMysqlScheme=true"
    return found


def raise_if_driver_is_missing(error: Exception, kind: str, options: Mapping[str, str]) -> None:
    """Raises ConnectError if an error of Spark says so."""
    if kind.lower() == JDBC and any(each in str(error) for each in MISSING):
        url = option(options, "url").split("?")[0]
        raise ConnectError(f"Spark has no JDBC driver for {url}; {PACKAGE} brings one") from error
