"""Options of tables that Flink and RisingWave need and a topic of this cluster does not: where Kafka is, and how it is read.

A statement from there declares the same table here. `connector` marks it. A notice names the options without an effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.sql.dialect import Statement
from barnabas.sql.interface import Notice, SqlError
from barnabas.sql.states import INVALID_PARAMETER, not_supported

CONNECTOR = "connector"
_KAFKA = ("kafka", "upsert-kafka")
_WITHOUT_EFFECT = (
    "properties.",
    "scan.",
    "sink.",
    "json.",
    "value.json.",
    "key.json.",
    "avro.",
    "key.format",
    "value.fields-include",
)
_NAMES = {"value.format": "format", "key.fields": "key"}
_ENCODINGS = {"JSON": "json", "AVRO": "avro", "PROTOBUF": "protobuf", "BYTES": "raw"}


def read_options(found: Sequence[tuple[str, str]]) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """The options under the names of this dialect, and the names of those without an effect. Raises SqlError."""
    connector = next((value for name, value in found if name == CONNECTOR), None)
    if connector is None:
        return list(found), ()
    if connector.lower() not in _KAFKA:
        raise SqlError(
            INVALID_PARAMETER, f'the connector "{connector}" is not known',
            hint="a table is a topic of this cluster: WITH (topic = '…'); Kafka Connect brings rows of other systems",
        )  # fmt: skip
    kept, ignored = [], [CONNECTOR]
    for name, value in found:
        if name == CONNECTOR:
            continue
        if name.startswith(_WITHOUT_EFFECT):
            ignored.append(name)
        else:
            kept.append((_NAMES.get(name, name), value.replace(";", ",") if name == "key.fields" else value))
    return kept, tuple(ignored)


def notice_of(ignored: Sequence[str]) -> Notice:
    """The words about options without an effect."""
    return Notice(
        f"options without an effect: {', '.join(ignored)}", hint="the table is a topic of this cluster, read from its beginning"
    )


def taken_encoding(statement: Statement) -> tuple[Statement, dict[str, str]]:
    """The statement without RisingWave's `FORMAT PLAIN ENCODE JSON` at its end, and the option that it stands for. Raises SqlError."""
    for at in range(len(statement.tokens) - 3):
        if (statement.word(at), statement.word(at + 2)) != ("FORMAT", "ENCODE"):
            continue
        encoding = statement.word(at + 3)
        if statement.word(at + 1) not in ("PLAIN", "UPSERT") or encoding not in _ENCODINGS:
            words = f"FORMAT {statement.word(at + 1)} ENCODE {encoding}"
            raise not_supported(
                f"{words} is not supported", statement.position(at), "FORMAT PLAIN ENCODE JSON, AVRO, PROTOBUF or BYTES"
            )
        return Statement(statement.text, statement.tokens[:at]), {"format": _ENCODINGS[encoding]}
    return statement, {}
