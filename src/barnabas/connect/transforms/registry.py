"""The table of the transforms and predicates."""

from __future__ import annotations

from importlib import import_module
from typing import Any

APACHE = "org.apache.kafka.connect.transforms."
SIDED = {  # with a variant for keys and one for values
    "Cast": "casting", "ExtractField": "fields", "Flatten": "fields", "HeaderFrom": "headers", "HoistField": "fields",
    "InsertField": "fields", "MaskField": "fields", "ReplaceField": "fields", "SetSchemaMetadata": "fields",
    "TimestampConverter": "times",
}  # fmt: skip
WHOLE = {
    f"{APACHE}DropHeaders": "headers", f"{APACHE}Filter": "routing", f"{APACHE}InsertHeader": "headers",
    f"{APACHE}RegexRouter": "routing", f"{APACHE}TimestampRouter": "routing", f"{APACHE}ValueToKey": "fields",
    "barnabas.Sql": "queries", "barnabas.Python": "queries",
}  # fmt: skip
DEBEZIUM = "io.debezium.transforms."
OF_DEBEZIUM = {  # module and class
    f"{DEBEZIUM}ExtractNewRecordState": ("debezium", "ExtractNewRecordState"),
    f"{DEBEZIUM}ByLogicalTableRouter": ("debezium", "ByLogicalTableRouter"),
    f"{DEBEZIUM}outbox.EventRouter": ("outbox", "EventRouter"),
    f"{DEBEZIUM}Filter": ("debezium", "Scripted"),
    f"{DEBEZIUM}ContentBasedRouter": ("debezium", "Scripted"),
}
CONFLUENT = "io.confluent.connect.transforms."
OF_CONFLUENT = {  # module, class and side
    f"{CONFLUENT}Drop$Key": ("confluent", "Drop", "key"),
    f"{CONFLUENT}Drop$Value": ("confluent", "Drop", "value"),
    f"{CONFLUENT}ExtractTopic$Key": ("confluent", "ExtractTopic", "key"),
    f"{CONFLUENT}ExtractTopic$Value": ("confluent", "ExtractTopic", "value"),
    f"{CONFLUENT}ExtractTopic$Header": ("confluent", "ExtractTopic", "headers"),
    f"{CONFLUENT}Filter$Key": ("confluent", "Filter", "key"),
    f"{CONFLUENT}Filter$Value": ("confluent", "Filter", "value"),
    f"{CONFLUENT}MessageTimestampRouter": ("confluent", "MessageTimestampRouter", None),
    f"{CONFLUENT}TombstoneHandler": ("confluent", "TombstoneHandler", None),
    "io.confluent.connect.cloud.transforms.TopicRegexRouter": ("routing", "RegexRouter", None),
}
PREDICATES = tuple(f"{APACHE}predicates.{name}" for name in ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches"))


def transforms() -> dict[str, tuple[str, str, str | None]]:
    """By class name the module, the class in it, and the side for those with variants."""
    found: dict[str, tuple[str, str, str | None]] = {
        name: (module, name.rpartition(".")[2], None) for name, module in WHOLE.items()
    }
    found |= {name: (module, cls, None) for name, (module, cls) in OF_DEBEZIUM.items()}
    found |= OF_CONFLUENT
    for name, module in SIDED.items():
        for side in ("Key", "Value"):
            found[f"{APACHE}{name}${side}"] = module, name, side.lower()
    return found


def load(module: str, name: str, side: str | None) -> Any:
    """The class of a transform or a predicate."""
    cls = getattr(import_module(f"barnabas.connect.transforms.{module}"), name)
    return cls if side is None else type(f"{name}{side.capitalize()}", (cls,), {"side": side, "__doc__": cls.__doc__})
