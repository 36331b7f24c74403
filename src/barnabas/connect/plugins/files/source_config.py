"""The config keys of the source of files. Keys that SpoolDir's connectors have are named as there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Importance, Type, invalid
from barnabas.connect.java_patterns import java_pattern
from barnabas.connect.plugins.files.line_formats import Csv, JsonLines, LineFormat, Lines
from barnabas.connect.plugins.files.selection import ORDERS, Selection, place_of
from barnabas.connect.plugins.files.storage import checked_place, define_store
from barnabas.connect.plugins.files.table_formats import Avro, Parquet, TableFormat
from barnabas.connect.validators import Checked, NonEmptyString, Range, Regex, ValidList, ValidString, one_of
from barnabas.tables.declaration import declared
from barnabas.tables.errors import TableError

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
FORMATS = ("lines", "csv", "json", "avro", "parquet")
LINE_FORMATS = ("lines", "csv", "json")
PLACE = Checked(checked_place, "an absolute path or a URL")
NONE, MOVE, DELETE = "NONE", "MOVE", "DELETE"
SEPARATOR, QUOTE = "csv.separator.char", "csv.quote.char"


def _character(name: str, value: Any) -> None:
    if value:
        character(name, value)


def character(name: str, text: str) -> str:
    """One character, given as itself or as its number, as SpoolDir has it. Raises ConfigError."""
    made = {"\\t": "\t"}.get(text) or (chr(int(text)) if len(text) > 1 and text.isdecimal() and int(text) < 128 else text)
    if len(made) != 1 or not made.isascii():
        raise invalid(name, text, "one ASCII character, or its number such as 44")
    return made


def _columns(name: str, value: Any) -> None:
    if value:
        try:
            declared(value)
        except TableError as error:
            raise invalid(name, value, str(error)) from None


CONFIG = define_store(
    ConfigDef()
    .define("topic", Type.STRING, importance=HIGH, documentation="The topic of the records.", validator=NonEmptyString())
    .define(
        "input.path", Type.STRING, importance=HIGH, validator=PLACE,
        documentation="The folder to watch: an absolute path, or a URL of an object store such as s3://bucket/prefix. It may have *, ?, "
        "[a-z], and ** for folders of any depth: /data/in/**/*.csv.",
    )
    .define("format", Type.STRING, "lines", importance=HIGH, validator=one_of(*FORMATS), documentation="The format of the files.")
    .define(
        "input.file.pattern", Type.STRING, ".*", importance=HIGH, validator=Regex(),
        documentation="A regular expression that the whole name of a file fits to, without its folder.",
    )
    .define(
        "input.path.walk.recursively", Type.BOOLEAN, False, importance=LOW,
        documentation="Whether files in folders below input.path are read too.",
    )
    .define(
        "follow", Type.BOOLEAN, False, importance=MEDIUM,
        documentation="Whether files grow without end, as logs do: they are never finished, and a last line waits for its line feed. "
        "For the formats lines, csv and json.",
    )
    .define(
        "file.minimum.age.ms", Type.LONG, 1000, importance=LOW, validator=Range(0),
        documentation="A local file is finished when it has not changed for so long. Objects of a store are whole at once.",
    )
    .define(
        "files.sort.attributes", Type.LIST, "NameAsc", importance=LOW, validator=ValidList(tuple(ORDERS)),
        documentation="The order in which files that are there are read.",
    )
    .define(
        "cleanup.policy", Type.STRING, NONE, importance=MEDIUM, validator=ValidString((NONE, MOVE, DELETE), is_case_sensitive=False),
        documentation="What becomes of a finished file, once all of its records are in the log: it stays, or moves to finished.path, or "
        "is deleted.",
    )
    .define("finished.path", Type.STRING, None, importance=MEDIUM, validator=PLACE, documentation="Where finished files move to.")
    .define(
        "halt.on.error", Type.BOOLEAN, True, importance=HIGH,
        documentation="Whether a file that cannot be read ends the task. Otherwise it moves to error.path, and the next file follows. "
        "Single bad lines go by errors.tolerance, if this is true.",
    )
    .define("error.path", Type.STRING, None, importance=MEDIUM, validator=PLACE, documentation="Where files with errors move to.")
    .define(
        "empty.poll.wait.ms", Type.LONG, 500, importance=LOW, validator=Range(1),
        documentation="The pause between two looks at a folder without news.",
    )
    .define(
        "file.buffer.size.bytes", Type.INT, 4 << 20, importance=LOW, validator=Range(1),
        documentation="The bytes of a batch, for the formats lines, csv and json.",
    )
    .define(
        "key.fields", Type.LIST, "", importance=MEDIUM,
        documentation="Fields of the value that make the key: one is the key itself, several are a struct. For all formats but lines.",
    )
    .define(
        "value.schema", Type.STRING, None, importance=MEDIUM, validator=Checked(_columns, "names and types"),
        documentation="Fields of records of CSV and JSON, with their types in SQL: id BIGINT, name STRING, at TIMESTAMP.",
    )
    .define(
        "schema.generation.enabled", Type.BOOLEAN, True, importance=MEDIUM,
        documentation="Whether the types of CSV without value.schema are inferred from the first rows of each file: numbers and booleans. "
        "Otherwise all fields are strings.",
    )
    .define(
        "csv.first.row.as.header", Type.BOOLEAN, True, importance=MEDIUM,
        documentation="Whether the first row has the names of the fields. Otherwise value.schema has them, or they are column01 …",
    )
    .define(
        SEPARATOR, Type.STRING, ",", importance=LOW, validator=Checked(_character, "one character"),
        documentation="The character between fields: itself, or its number.",
    )
    .define(
        QUOTE, Type.STRING, '"', importance=LOW, validator=Checked(_character, "one character"),
        documentation="The character around fields that have a separator or a line feed. Empty: there is none.",
    )
    .define("csv.skip.lines", Type.INT, 0, importance=LOW, validator=Range(0), documentation="Lines before the first row.")
)  # fmt: skip


def errors(config: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """What does not fit together, by key."""
    found: dict[str, Sequence[str]] = {}
    policy = config.get("cleanup.policy", NONE).strip().upper()
    form, follows = config.get("format", "lines").strip(), _true(config, "follow", "false")
    if policy == MOVE and not config.get("finished.path", "").strip():
        found["finished.path"] = ["finished.path is needed if cleanup.policy is MOVE"]
    if not _true(config, "halt.on.error", "true") and not config.get("error.path", "").strip():
        found["error.path"] = ["error.path is needed if halt.on.error is false"]
    if config.get("key.fields", "").strip() and form == "lines":
        found["key.fields"] = ["lines have no fields"]
    if follows and form not in LINE_FORMATS:
        found["follow"] = [f"files of the format {form} do not grow: follow is for {', '.join(LINE_FORMATS)}"]
    if follows and policy != NONE:
        found["cleanup.policy"] = ["files that are followed are never finished: cleanup.policy is NONE, or follow is false"]
    return found


def _true(config: Mapping[str, str], key: str, default: str) -> bool:
    return config.get(key, default).strip().lower() == "true"


def selection_of(config: Config, excluded: Sequence[str]) -> Selection:
    """The files that a task reads."""
    return Selection(
        place_of(config["input.path"], recursive=config["input.path.walk.recursively"]), java_pattern(config["input.file.pattern"]),
        config["files.sort.attributes"], excluded, int(config.get("task.number", 0)), int(config.get("task.count", 1)),
    )  # fmt: skip


def format_of(config: Config) -> LineFormat | TableFormat:
    """The format of the files."""
    fields = declared(config["value.schema"]) if config["value.schema"] else None
    match config["format"]:
        case "lines":
            return Lines()
        case "json":
            return JsonLines(fields)
        case "csv":
            quote = config[QUOTE] and character(QUOTE, config[QUOTE])
            return Csv(
                fields, has_header=config["csv.first.row.as.header"], separator=character(SEPARATOR, config[SEPARATOR]), quote=quote,
                skipped=config["csv.skip.lines"], infers=config["schema.generation.enabled"],
            )  # fmt: skip
        case "avro":
            return Avro()
    return Parquet()
