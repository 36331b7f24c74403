"""Configs of every wrong kind. Each is validated, created if that is not refused, and deleted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SOURCE = {"connector.class": FILE_SOURCE, "file": "/no/such/input", "topic": "from-file"}
SINK = {"connector.class": "FileStreamSink", "file": "/tmp/barnabas-differential", "topics": "to-file"}
OF_KAFKA = "org.apache.kafka.connect."
TRANSFORMS = OF_KAFKA + "transforms."


def transform(name: str, **keys: str) -> dict[str, str]:
    """A source with one transform."""
    return {
        **SOURCE,
        "transforms": "t",
        "transforms.t.type": TRANSFORMS + name,
        **{f"transforms.t.{key}": each for key, each in keys.items()},
    }


NUMBERS = {
    "empty": "", "blank": " ", "a fraction": "1.5", "negative": "-1", "too large": "99999999999", "in hex": "0x1", "with words": "1 task",
}  # fmt: skip
CONFIGS: Mapping[str, Mapping[str, Any]] = {
    **{f"tasks.max {what}": {**SOURCE, "tasks.max": text} for what, text in NUMBERS.items()},
    **{f"errors.retry.timeout {what}": {**SOURCE, "errors.retry.timeout": text} for what, text in NUMBERS.items() if what != "negative"},
    "errors.retry.delay.max.ms in words": {**SOURCE, "errors.retry.delay.max.ms": "soon"},
    "tasks.max null": {**SOURCE, "tasks.max": None},
    "a name with a control character": {**SOURCE, "name": "a\u0007b"},
    "an empty key": {**SOURCE, "": "x", "tasks.max": "0"},
    "tasks.max.enforce in words": {**SOURCE, "tasks.max.enforce": "perhaps"},
    "errors.tolerance in capitals": {**SOURCE, "errors.tolerance": "SOME"},
    "errors.log.include.messages empty": {**SOURCE, "errors.log.include.messages": ""},
    "config.action.reload unknown": {**SOURCE, "config.action.reload": "never"},
    "a class of a converter": {**SOURCE, "connector.class": OF_KAFKA + "json.JsonConverter"},
    "a class of a transform": {**SOURCE, "connector.class": TRANSFORMS + "Filter"},
    "a converter that is a connector": {**SOURCE, "value.converter": FILE_SOURCE},
    "a header converter that is none": {**SOURCE, "header.converter": OF_KAFKA + "converters.IntegerKonverter"},
    "a converter with a wrong key": {
        **SOURCE, "value.converter": OF_KAFKA + "json.JsonConverter", "value.converter.schemas.cache.size": "x",
    },
    "a plug-in version": {**SOURCE, "connector.plugin.version": "9.9.9"},
    "transforms without a type": {**SOURCE, "transforms": "t"},
    "transforms blank": {**SOURCE, "transforms": "a, ,b"},
    "a transform that is not there": {**SOURCE, "transforms": "t", "transforms.t.type": TRANSFORMS + "Nope"},
    "a transform that is a predicate": {**SOURCE, "transforms": "t", "transforms.t.type": TRANSFORMS + "predicates.HasHeaderKey"},
    "a transform that is a converter": {**SOURCE, "transforms": "t", "transforms.t.type": OF_KAFKA + "json.JsonConverter"},
    "HoistField without a field": transform("HoistField$Value"),
    "RegexRouter without keys": transform("RegexRouter"),
    "RegexRouter with a wrong pattern": transform("RegexRouter", regex="(", replacement="x"),
    "Cast without a spec": transform("Cast$Value"),
    "Cast to a wrong type": transform("Cast$Value", spec="a:money"),
    "ExtractField without a field": transform("ExtractField$Key"),
    "InsertField without fields": transform("InsertField$Value"),
    "TimestampConverter without a target": transform("TimestampConverter$Value"),
    "TimestampConverter to a wrong type": transform("TimestampConverter$Value", **{"target.type": "moon"}),
    "ValueToKey without fields": transform("ValueToKey"),
    "MaskField without fields": transform("MaskField$Value"),
    "HeaderFrom without keys": transform("HeaderFrom$Value"),
    "InsertHeader without keys": transform("InsertHeader"),
    "DropHeaders without keys": transform("DropHeaders"),
    "negate without a predicate": transform("Filter", negate="true"),
    "negate in words": {**transform("Filter", negate="perhaps", predicate="p"), "predicates": "p",
                        "predicates.p.type": TRANSFORMS + "predicates.RecordIsTombstone"},
    "a predicate that is not there": {**SOURCE, "predicates": "p", "predicates.p.type": "Nope"},
    "a predicate without a type": {**SOURCE, "predicates": "p"},
    "a predicate that is a transform": {**SOURCE, "predicates": "p", "predicates.p.type": TRANSFORMS + "Filter"},
    "twice the predicate": {**SOURCE, "predicates": "p,p"},
    "TopicNameMatches without a pattern": {
        **SOURCE, "predicates": "p", "predicates.p.type": TRANSFORMS + "predicates.TopicNameMatches",
    },
    "TopicNameMatches with a wrong pattern": {
        **SOURCE, "predicates": "p", "predicates.p.type": TRANSFORMS + "predicates.TopicNameMatches", "predicates.p.pattern": "[",
    },
    "topic creation without partitions": {**SOURCE, "topic.creation.default.replication.factor": "1"},
    "topic creation with none of them": {
        **SOURCE, "topic.creation.default.replication.factor": "0", "topic.creation.default.partitions": "0",
    },
    "topic creation in words": {
        **SOURCE, "topic.creation.default.replication.factor": "x", "topic.creation.default.partitions": "y",
    },
    "topic creation of a group without topics": {
        **SOURCE, "topic.creation.default.replication.factor": "1", "topic.creation.default.partitions": "1",
        "topic.creation.groups": "g",
    },
    "topic creation with a wrong pattern": {
        **SOURCE, "topic.creation.default.replication.factor": "1", "topic.creation.default.partitions": "1",
        "topic.creation.groups": "g", "topic.creation.g.include": "[",
    },
    "twice the group of topics": {
        **SOURCE, "topic.creation.default.replication.factor": "1", "topic.creation.default.partitions": "1",
        "topic.creation.groups": "g,g",
    },
    "exactly.once.support unknown": {**SOURCE, "exactly.once.support": "maybe"},
    "transaction.boundary unknown": {**SOURCE, "transaction.boundary": "day"},
    "transaction.boundary.interval.ms zero": {**SOURCE, "transaction.boundary.interval.ms": "0"},
    "offsets.storage.topic blank": {**SOURCE, "offsets.storage.topic": " "},
    "a topic that is blank": {**SOURCE, "topic": " "},
    "topics of commas": {**SINK, "topics": ",,"},
    "topics.regex that is none": {"connector.class": "FileStreamSink", "topics.regex": "["},
    "no topics but a blank pattern": {"connector.class": "FileStreamSink", "topics": "", "topics.regex": " "},
    "dead letters that the pattern takes": {
        "connector.class": "FileStreamSink", "topics.regex": "to-.*", "errors.deadletterqueue.topic.name": "to-nowhere",
    },
    "dead letters with a wrong number": {**SINK, "errors.deadletterqueue.topic.replication.factor": "many"},
    "dead letters with headers in words": {**SINK, "errors.deadletterqueue.context.headers.enable": "1"},
}  # fmt: skip


def requests() -> Iterator[tuple[str, str, str, Any]]:
    """Step, method, path and body of each request."""
    for what, config in CONFIGS.items():
        kind = "FileStreamSink" if "Sink" in str(config["connector.class"]) else "FileStreamSource"
        name = config.get("name", "wrong")
        yield f"validate {what}", "PUT", f"/connector-plugins/{kind}/config/validate", {"name": "wrong", **config}
        yield f"create {what}", "POST", "/connectors", {"name": name, "config": dict(config), "initial_state": "STOPPED"}
        yield f"delete {what}", "DELETE", "/connectors/wrong", None
