"""The config keys of the sink of Iceberg tables: those of the Apache Iceberg sink for Kafka Connect, with their defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Password, Type, invalid
from barnabas.connect.java_patterns import java_pattern
from barnabas.connect.validators import Checked, Range

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
TABLES, DYNAMIC, ROUTE = "iceberg.tables", "iceberg.tables.dynamic-enabled", "iceberg.tables.route-field"
CATALOG, TABLE, CREATE_PROPS = "iceberg.catalog.", "iceberg.table.", "iceberg.tables.auto-create-props."
UPSERT, ID_COLUMNS, PARTITION_BY = (
    f"iceberg.tables.{each}" for each in ("upsert-mode-enabled", "default-id-columns", "default-partition-by")
)
SECRETS = ("token", "credential", "s3.secret-access-key", "s3.session-token", "adls.account-key", "gcs.oauth2.token")
PARTITION = re.compile(r"(?:(\w+)\(\s*([^,()]+?)\s*(?:,\s*(\d+)\s*)?\)|([^,()]+))\s*(?:,|$)\s*")
CATALOGS = ("rest", "sql", "hive", "glue", "dynamodb", "bigquery", "in-memory")  # that PyIceberg has
OTHERS = {  # catalogs of Java, with the way out
    "nessie": ". Nessie speaks rest too, at the path /iceberg of its server",
    "hadoop": ". A warehouse without a catalog needs one, such as sql with a file of SQLite",
}
TRANSFORMS = ("identity", "year", "years", "month", "months", "day", "days", "hour", "hours", "bucket", "truncate")


class Partition(Struct, frozen=True):
    """A field by which a table is partitioned, such as `bucket(id, 16)`."""

    transform: str
    column: str
    width: int | None = None


def partitions_of(name: str, text: str | None) -> list[Partition]:
    """The fields of a text such as `day(at), region`. Raises ConfigError."""
    found, at = [], 0
    given = (text or "").strip()
    while at < len(given):
        match = PARTITION.match(given, at)
        if match is None or (match[1] or "identity").lower() not in TRANSFORMS:
            raise invalid(name, text, f"columns, or {', '.join(TRANSFORMS[1::2])}, bucket(COLUMN, N) and truncate(COLUMN, N)")
        transform = (match[1] or "identity").lower()
        if (transform in {"bucket", "truncate"}) != (match[3] is not None):
            raise invalid(name, text, "bucket and truncate have a number, such as bucket(id, 16); the others have none")
        found.append(Partition(transform, (match[2] or match[4]).strip(), int(match[3]) if match[3] else None))
        at = match.end()
    return found


def _check_partitions(name: str, value: Any) -> None:
    partitions_of(name, value)


CONFIG = (
    ConfigDef()
    .define(TABLES, Type.LIST, "", importance=HIGH, documentation="The tables, as NAMESPACE.NAME. Each record goes into all of them.")
    .define(
        DYNAMIC, Type.BOOLEAN, False, importance=MEDIUM,
        documentation="Whether the field of iceberg.tables.route-field has the name of the table, in whatever case.",
    )
    .define(
        ROUTE, Type.STRING, None, importance=MEDIUM,
        documentation="The field that says into which tables a record goes: those whose iceberg.table.NAME.route-regex matches it.",
    )
    .define("iceberg.catalog", Type.STRING, "iceberg", importance=MEDIUM, documentation="The name of the catalog.")
    .define(
        "iceberg.tables.auto-create-enabled", Type.BOOLEAN, False, importance=MEDIUM,
        documentation="Whether tables that are missing are created, with their namespaces.",
    )
    .define(
        "iceberg.tables.evolve-schema-enabled", Type.BOOLEAN, False, importance=MEDIUM,
        documentation="Whether columns that are missing are added.",
    )
    .define(
        ID_COLUMNS, Type.LIST, "", importance=MEDIUM,
        documentation="The columns that identify a row; iceberg.table.NAME.id-columns has those of one table.",
    )
    .define(
        PARTITION_BY, Type.STRING, None, importance=MEDIUM,
        validator=Checked(_check_partitions, "columns and transforms"),
        documentation="How tables that are created are partitioned: columns, year, month, day and hour of one, bucket(COLUMN, N), "
        "truncate(COLUMN, N). iceberg.table.NAME.partition-by is for one table.",
    )
    .define(
        "iceberg.tables.default-commit-branch", Type.STRING, "main", importance=LOW,
        documentation="The branch that gets the commits; iceberg.table.NAME.commit-branch is for one table.",
    )
    .define(
        UPSERT, Type.BOOLEAN, False, importance=MEDIUM,
        documentation="Whether a row replaces the one with the same id columns. Files that have such a row are written anew.",
    )
    .define(
        "iceberg.control.commit.interval-ms", Type.LONG, 300_000, importance=HIGH, validator=Range(1),
        documentation="The time between two commits of a task, in milliseconds.",
    )
    .define(
        "buffer.memory", Type.LONG, 256 << 20, importance=LOW, validator=Range(1),
        documentation="The bytes in memory at which a task commits before.",
    )
)  # fmt: skip
for _name in SECRETS:
    CONFIG.define(
        CATALOG + _name,
        Type.PASSWORD,
        None,
        importance=LOW,
        group="Catalog",
        documentation=f"The property {_name} of the catalog.",
    )


class Settings(Struct, frozen=True):
    """The parsed config; `lakes/sink.py: LakeChoice` explains those that all lake tables have."""

    connector: str
    catalog: str
    properties: Mapping[str, str]
    tables: Sequence[str]
    is_dynamic: bool
    route_field: str | None
    table_config: Mapping[str, str]
    id_columns: Sequence[str]
    partition_by: str
    branch: str
    create_properties: Mapping[str, str]
    upserts: bool
    creates: bool
    evolves: bool
    interval_s: float
    most_bytes: int
    flush_size: int = 1 << 62
    pk_mode: str = "none"
    pk_fields: Sequence[str] = ()
    whitelist: frozenset[str] = frozenset()
    deletes: bool = False
    ignores_nulls: bool = True

    def of_table(self, name: str, key: str, default: str) -> str:
        """A key of one table."""
        return self.table_config.get(f"{name}.{key}", default)

    def ids_of(self, name: str) -> tuple[str, ...]:
        """The columns that identify a row of a table."""
        given = self.of_table(name, "id-columns", ",".join(self.id_columns))
        return tuple(each.strip() for each in given.split(",") if each.strip())

    @property
    def offsets_key(self) -> str:
        """The property of a snapshot's summary that has the offsets."""
        return f"kafka.connect.offsets.connect-{self.connector}"


def settings_of(config: Config) -> Settings:
    """The settings in a config. Raises ConfigError."""
    found = Settings(
        connector=config["name"], catalog=config["iceberg.catalog"], properties=_catalog(config), tables=tuple(config[TABLES]),
        is_dynamic=config[DYNAMIC], route_field=config[ROUTE], table_config=_below(config, TABLE),
        id_columns=tuple(config[ID_COLUMNS]), partition_by=config[PARTITION_BY] or "",
        branch=config["iceberg.tables.default-commit-branch"], create_properties=_below(config, CREATE_PROPS),
        upserts=config[UPSERT], creates=config["iceberg.tables.auto-create-enabled"],
        evolves=config["iceberg.tables.evolve-schema-enabled"], interval_s=config["iceberg.control.commit.interval-ms"] / 1000,
        most_bytes=config["buffer.memory"],
    )  # fmt: skip
    for name in found.tables:
        partitions_of(f"{TABLE}{name}.partition-by", found.of_table(name, "partition-by", ""))
    return found


def _below(config: Config, prefix: str) -> dict[str, str]:
    return {
        key.removeprefix(prefix): value.value if isinstance(value, Password) else str(value)
        for key, value in config.items()
        if key.startswith(prefix) and value is not None
    }


def _catalog(config: Config) -> dict[str, str]:
    """The properties of the catalog. A JDBC catalog of Java is the SQL catalog here."""
    found = _below(config, CATALOG)
    impl = found.pop("catalog-impl", "").rpartition(".")[2].removesuffix("Catalog").lower()
    kind = found.get("type") or impl
    if kind:
        found["type"] = "sql" if kind == "jdbc" else kind
    if found.get("uri", "").startswith("jdbc:"):
        found["uri"] = _sqlalchemy(found["uri"].removeprefix("jdbc:"))
    return found


def _sqlalchemy(address: str) -> str:
    scheme, _, rest = address.partition(":")
    return f"sqlite:///{rest}" if scheme == "sqlite" and not rest.startswith("//") else address


def errors_of(config: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """What is wrong with keys that must fit to each other, by key."""
    try:
        parsed = settings_of({"name": "", **config, **CONFIG.parse(config)})
    except ConfigError:
        return {}
    found: dict[str, Sequence[str]] = {}
    if parsed.is_dynamic:
        if parsed.tables:
            found[TABLES] = ["Cannot specify both static and dynamic table names"]
        if not parsed.route_field:
            found[ROUTE] = ["Must specify a route field if using dynamic table names"]
    elif not parsed.tables:
        found[TABLES] = ["Must specify table name(s)"]
    for name in parsed.tables:
        if "." not in name:
            found[TABLES] = [f"the table {name} has no namespace: NAMESPACE.NAME"]
        if parsed.upserts and not parsed.ids_of(name):
            found[UPSERT] = [f"{UPSERT} needs {ID_COLUMNS}, or iceberg.table.{name}.id-columns"]
        try:
            java_pattern(parsed.of_table(name, "route-regex", ""))
        except re.error as error:
            found[f"{TABLE}{name}.route-regex"] = [f"no regular expression: {error}"]
    if parsed.is_dynamic and parsed.upserts and not parsed.id_columns:
        found[UPSERT] = [f"{UPSERT} needs {ID_COLUMNS}"]
    return found | _catalog_errors(parsed.properties)


def _catalog_errors(properties: Mapping[str, str]) -> dict[str, Sequence[str]]:
    key = "iceberg.catalog.type"
    if not {"type", "uri", "py-catalog-impl"} & properties.keys():
        return {key: [f"{key} is needed, such as rest or sql, with iceberg.catalog.uri"]}
    kind = properties.get("type", CATALOGS[0])
    if kind in CATALOGS:
        return {}
    return {key: [f"Invalid value {kind} for configuration {key}: one of {', '.join(CATALOGS)}{OTHERS.get(kind, '')}"]}
