"""The page `docs/reference/connectors.md`: each connector that ships, with its names, what it needs, and its keys."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.connect.catalog import BUILT_IN, Kind, Plugin
from barnabas.connect.config_def import ConfigKey

GUIDES = {  # by the package of `connect/plugins/`, or the module of `dialects/`: what is read or written, the guide, the extra
    "file_stream": ("lines of a file", "connect.md", "connect"),
    "datagen": ("records that are made up", "connect.md", "connect"),
    "sql_sink": ("tables of databases", "databases.md#from-a-topic-into-a-table", "connect"),
    "debezium_jdbc": ("tables of databases, by Debezium's keys", "databases.md#debeziums-sink", "connect"),
    "sql_source": ("tables and queries of databases", "databases.md#from-a-table-into-a-topic", "connect"),
    "postgres_capture": ("changes of PostgreSQL", "capture-postgresql.md", "connect"),
    "mysql_capture": ("changes of MariaDB and MySQL", "capture-mariadb.md", "connect"),
    "debezium_engine": ("changes, by any connector of Debezium", "databases.md#capture-other-databases-by-debezium", "debezium"),
    "files": ("files of folders and object stores", "connect-files.md", "connect"),
    "http": ("HTTP interfaces", "connect-http.md", "connect"),
    "spool_dir": ("files of folders, by SpoolDir's keys", "connect-files.md#configs-of-other-connectors", "connect"),
    "confluent_stores": ("object stores, by Confluent's keys", "connect-files.md#configs-of-other-connectors", "connect"),
    "confluent_http": ("HTTP interfaces, by Confluent's keys", "connect-http.md#configs-of-confluents-sink", "connect"),
    "delta": ("Delta tables", "connect-lakes.md", "delta"),
    "iceberg": ("Iceberg tables", "connect-lakes.md", "iceberg"),
    "dlt_source": ("sources of dlt", "connect-dlt.md", "dlt"),
    "spark": ("formats of Spark", "connect-spark.md", "connect"),
}
INTRO = """# Connectors

Every connector that ships, and its keys. {generated} Keys with a name of yours in them, such as `spark.option.NAME`, are in the guides.
[Connect](connect.md#keys-of-all-connectors) has the keys of all connectors, and `GET /connector-plugins/NAME/config` the same definitions.
`pip install 'barnabas[all]'` brings all extras but `debezium` and `dlt`.
"""


def connectors_page(generated: str) -> str:
    """The page; `generated` is the note on its source."""
    ordered = sorted(BUILT_IN, key=lambda each: (list(GUIDES).index(_package(each)), each.kind is Kind.SINK))
    lines = [INTRO.format(generated=generated), *_table(ordered)]
    for each in ordered:
        lines += _section(each)
    return "\n".join(lines)


def _package(plugin: Plugin) -> str:
    """The package or the module of `connect/plugins/` in which it is."""
    module: str = plugin.load().__module__
    return module.removeprefix("barnabas.connect.plugins.").removeprefix("dialects.").split(".")[0]


def _short(plugin: Plugin) -> str:
    """Its name on the page: the short one, unless this is that of another one too."""
    own = plugin.name.rpartition(".")[2]
    return own if own in plugin.aliases or not plugin.aliases else plugin.aliases[0]


def _table(plugins: list[Plugin]) -> Iterator[str]:
    yield from ("| connector | kind | reads or writes | extra |", "|---|---|---|---|")
    for each in plugins:
        what, guide, extra = GUIDES[_package(each)]
        yield f"| [{_short(each)}](#{_short(each).lower()}) | {each.kind} | [{what}](../guides/{guide}) | `{extra}` |"
    yield ""


def _section(plugin: Plugin) -> Iterator[str]:
    others = ", ".join(f"`{each}`" for each in plugin.aliases)
    yield from (f"## {_short(plugin)}", "", f"`connector.class` is `{plugin.name}`, or one of {others}.", "")
    yield from ("| key | type | default | meaning |", "|---|---|---|---|")
    for key in plugin.load().config:
        yield f"| `{key.name}` | {key.type.lower()} | {_default(key)} | {_cell(key.documentation)} |"
    yield ""


def _default(key: ConfigKey) -> str:
    shown = key.shown()["default_value"]
    if key.is_required:
        return "required"
    return f"`{_cell(shown)}`" if shown else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
