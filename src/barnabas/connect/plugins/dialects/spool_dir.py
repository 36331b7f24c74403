"""SpoolDir's sources of files, by their class names and keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Importance, Type, invalid
from barnabas.connect.plugins.dialects.translation import Texts, TranslatedSource, idle, refusing
from barnabas.connect.plugins.files.source import FileSource
from barnabas.connect.plugins.files.source_config import PLACE
from barnabas.connect.validators import Checked, NonEmptyString, Range, Regex, ValidString

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
KEY, VALUE, GENERATION, GENERATED_KEY = "key.schema", "value.schema", "schema.generation.enabled", "schema.generation.key.fields"
TYPES = {  # of SQL, by Kafka Connect's types and by the names of its logical ones
    "BOOLEAN": "BOOLEAN", "INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INT", "INT64": "BIGINT", "FLOAT32": "FLOAT",
    "FLOAT64": "DOUBLE", "STRING": "STRING", "BYTES": "BINARY", "org.apache.kafka.connect.data.Date": "DATE",
    "org.apache.kafka.connect.data.Time": "TIME", "org.apache.kafka.connect.data.Timestamp": "TIMESTAMP",
}  # fmt: skip
DECIMAL, SCALE, DIGITS = "org.apache.kafka.connect.data.Decimal", "scale", 38
FREE = "the names of files that are read stay as they are"
REFUSED = {  # by all of these sources
    "cleanup.policy.maintain.relative.path": "files move into finished.path itself",
    "files.notifications.enabled": "there are no records about files",
    "timestamp.mode": "the timestamp of a record is the time of writing",
}
REFUSED_WITH_FIELDS = REFUSED | {"parser.timestamp.date.formats": "times are those of ISO 8601"}
REFUSED_BY_CSV = REFUSED_WITH_FIELDS | {
    "csv.escape.char": "a quotation mark within quotation marks is written twice", "csv.file.charset": "files are UTF-8",
}  # fmt: skip
REFUSED_BY_LINES = REFUSED | {"file.charset": "files are UTF-8"}
DEFAULTS = {
    "csv.escape.char": "92", "csv.file.charset": "UTF-8", "file.charset": "UTF-8", "timestamp.mode": "PROCESS_TIME",
    "cleanup.policy.maintain.relative.path": "false", "files.notifications.enabled": "false",
    "parser.timestamp.date.formats": "yyyy-MM-dd'T'HH:mm:ss,yyyy-MM-dd' 'HH:mm:ss",
}  # fmt: skip


def fields_of(name: str, text: str) -> dict[str, str]:
    """Names of fields and their types in SQL, of a schema in SpoolDir's JSON. Raises ConfigError."""
    try:
        found = json.loads(text)
        fields = found["fieldSchemas"]
        return {str(field): _type(name, field, its) for field, its in fields.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise invalid(name, text, 'a schema such as {"type": "STRUCT", "fieldSchemas": {"id": {"type": "INT64"}}}') from None


def _type(name: str, field: str, its: Mapping[str, Any]) -> str:
    logical = its.get("name")
    if logical == DECIMAL:
        return f"DECIMAL({DIGITS},{int((its.get('parameters') or {}).get(SCALE, 0))})"
    found = TYPES.get(str(logical)) or TYPES.get(str(its["type"]).upper())
    if found is None:
        raise invalid(name, its["type"], f"the type of the field {field} is not supported")
    return found


def _schema(name: str, value: Any) -> None:
    if value:
        fields_of(name, value)


SCHEMA = Checked(_schema, "a schema as JSON")


def _common(refused: Mapping[str, str]) -> ConfigDef:
    """The keys that all of these sources have, and those that are refused."""
    made = (
        ConfigDef()
        .define("topic", Type.STRING, importance=HIGH, validator=NonEmptyString(), documentation="The topic of the records.")
        .define("input.path", Type.STRING, importance=HIGH, validator=PLACE, documentation="The folder of the files.")
        .define("input.file.pattern", Type.STRING, importance=HIGH, validator=Regex(),
                documentation="A regular expression that the whole name of a file fits to.")
        .define("finished.path", Type.STRING, None, importance=HIGH, validator=PLACE, documentation="Where finished files move to.")
        .define("error.path", Type.STRING, None, importance=HIGH, validator=PLACE, documentation="Where files with errors move to.")
        .define("halt.on.error", Type.BOOLEAN, True, importance=HIGH,
                documentation="Whether a file with an error ends the task. Otherwise it moves to error.path.")
        .define("cleanup.policy", Type.STRING, "MOVE", importance=MEDIUM,
                validator=ValidString(("NONE", "MOVE", "DELETE"), is_case_sensitive=False),
                documentation="What becomes of a finished file.")
        .define("file.minimum.age.ms", Type.LONG, 0, importance=LOW, validator=Range(0),
                documentation="How long a file has not changed before it counts as finished.")
        .define("files.sort.attributes", Type.LIST, "NameAsc", importance=LOW, documentation="The order in which files are read.")
        .define("empty.poll.wait.ms", Type.LONG, 500, importance=LOW, validator=Range(1), documentation="The pause between two looks.")
        .define("input.path.walk.recursively", Type.BOOLEAN, False, importance=LOW,
                documentation="Whether files in folders below are read too.")
        .define("file.buffer.size.bytes", Type.INT, 4 << 20, importance=LOW, validator=Range(1), documentation="The bytes of a batch.")
    )  # fmt: skip
    idle(made, "batches have file.buffer.size.bytes", "batch.size")
    idle(made, FREE, "processing.file.extension")
    idle(made, "tasks share files by their names", "task.partitioner")
    return refusing(made, refused, DEFAULTS)


def _with_schemas(refused: Mapping[str, str]) -> ConfigDef:
    return (
        _common(refused)
        .define(KEY, Type.STRING, "", importance=HIGH, validator=SCHEMA, documentation="The fields of the key, as a schema in JSON.")
        .define(VALUE, Type.STRING, "", importance=HIGH, validator=SCHEMA, documentation="The fields of the value, as a schema in JSON.")
        .define(GENERATION, Type.BOOLEAN, False, importance=MEDIUM,
                documentation="Whether the header of CSV, or the values of JSON, say what the fields are. Those of CSV are texts then.")
        .define(GENERATED_KEY, Type.LIST, "", importance=MEDIUM, documentation="The fields of the key, if schemas are generated.")
    )  # fmt: skip


class SpoolDir(TranslatedSource, FileSource):
    """What the sources have in common."""

    behind = FileSource.config
    families = (*FileSource.families, "schema.generation.", "files.notifications.")
    form: ClassVar[str]
    has_struct_keys = True

    @classmethod
    def translated(cls, given: Mapping[str, str]) -> Texts:
        found = super().translated(given)
        found["format"] = cls.form
        for key in (KEY, VALUE, GENERATION):
            found.pop(key, None)
        return found


class WithSchemas(SpoolDir):
    """Sources of fields."""

    @classmethod
    def translated(cls, given: Mapping[str, str]) -> Texts:
        found = super().translated(given)
        if given.get(VALUE):
            fields = fields_of(VALUE, given[VALUE])
            found[VALUE] = ", ".join(f"`{name}` {kind}" for name, kind in fields.items())
            found["key.fields"] = ",".join(fields_of(KEY, given[KEY])) if given.get(KEY) else ""
        elif given[GENERATION].strip().lower() == "true":
            found["key.fields"] = given.get(GENERATED_KEY, "")
        else:
            raise invalid(VALUE, "", f"it is needed, unless {GENERATION} is true")
        found[GENERATION] = "false" if cls.form == "csv" else "true"
        return found


class SpoolDirCsv(WithSchemas):
    """com.github.jcustenborder.kafka.connect.spooldir.SpoolDirCsvSourceConnector."""

    form = "csv"
    refused = REFUSED_BY_CSV
    config = idle(
        _with_schemas(refused)
        .define("csv.first.row.as.header", Type.BOOLEAN, False, importance=MEDIUM,
                documentation="Whether the first row has the names of the fields.")
        .define("csv.separator.char", Type.STRING, "44", importance=LOW, documentation="The character between fields, or its number.")
        .define("csv.quote.char", Type.STRING, "34", importance=LOW, documentation="The character around fields, or its number.")
        .define("csv.skip.lines", Type.INT, 0, importance=LOW, validator=Range(0), documentation="Lines before the first row."),
        "rows are read by RFC 4180", "csv.case.sensitive.field.names", "csv.ignore.leading.whitespace", "csv.ignore.quotations",
        "csv.keep.carriage.return", "csv.null.field.indicator", "csv.strict.quotes", "csv.verify.reader", "csv.rfc.4180.parser.enabled",
        "parser.timestamp.timezone",
    )  # fmt: skip


class SpoolDirJson(WithSchemas):
    """com.github.jcustenborder.kafka.connect.spooldir.SpoolDirJsonSourceConnector: a JSON object on each line."""

    form = "json"
    refused = REFUSED_WITH_FIELDS
    config = _with_schemas(refused)


class SpoolDirAvro(SpoolDir):
    """com.github.jcustenborder.kafka.connect.spooldir.SpoolDirAvroSourceConnector."""

    form = "avro"
    refused = REFUSED
    config = _common(refused)


class SpoolDirLines(SpoolDir):
    """The sources of lines: SpoolDirLineDelimitedSourceConnector, and SpoolDirSchemaLessJsonSourceConnector, whose values are texts."""

    form = "lines"
    refused = REFUSED_BY_LINES
    config = _common(refused)
