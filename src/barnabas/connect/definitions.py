"""The config keys that all connectors have, those of all sources, and those of all sinks, as of Kafka Connect 4.3."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import barnabas
from barnabas.connect import catalog, topic_creation
from barnabas.connect.catalog import Kind
from barnabas.connect.config_def import ConfigDef, Importance, Range, Recommender, Type, Width, one_of
from barnabas.connect.config_types import ConfigError, invalid
from barnabas.connect.java_patterns import java_pattern
from barnabas.connect.validators import (
    Checked,
    NonEmptyString,
    NonEmptyStringWithoutControlChars,
    UniqueAliases,
    UniqueList,
    Validator,
    ValidString,
)

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
COMMON, TRANSFORMS, PREDICATES, ERRORS = "Common", "Transforms", "Predicates", "Error Handling"
TOPIC_CREATION, EXACTLY_ONCE, OFFSETS_TOPIC = "Topic Creation", "Exactly Once Support", "offsets.topic"
VERSION = "plugin.version"
CONVERTERS = {
    "key.converter": ("Key converter", Kind.CONVERTER),
    "value.converter": ("Value converter", Kind.CONVERTER),
    "header.converter": ("Header converter", Kind.HEADER_CONVERTER),
}
WORKER_DEFAULTS = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
}
NOT_BOTH = "Must configure one of topics or topics.regex"


def connector(worker: Mapping[str, str], kind: Kind | None = None, config: Mapping[str, str] | None = None) -> ConfigDef:
    """The keys of all connectors, and of all sources or sinks.

    Args:
        worker: settings of the workers; converters of connectors that name none.
        config: of the connector, whose converters have versions.
    """
    made = _common(worker, config or {})
    if kind is Kind.SOURCE:
        return _source(made, worker, config or {})
    return _sink(made) if kind is Kind.SINK else made


def _common(worker: Mapping[str, str], config: Mapping[str, str]) -> ConfigDef:
    given = {**WORKER_DEFAULTS, **worker}
    made = ConfigDef()
    _add(made, COMMON, 1, (
        ("name", Type.STRING, ..., HIGH, Width.MEDIUM, "Connector name", NonEmptyStringWithoutControlChars(),
         "The name of the connector. No other connector of the group has it."),
        ("connector.class", Type.STRING, ..., HIGH, Width.LONG, "Connector class", None,
         "The class of the connector: its full name, or an alias such as FileStreamSink or FileStreamSinkConnector."),
        ("connector.plugin.version", Type.STRING, barnabas.__version__, MEDIUM, Width.MEDIUM, "Connector version", _version(),
         "The version of the connector's class."),
        ("tasks.max", Type.INT, 1, HIGH, Width.SHORT, "Tasks max", Range(1), "How many tasks the connector has at most."),
        ("tasks.max.enforce", Type.BOOLEAN, True, LOW, Width.SHORT, "Enforce tasks max", None,
         "Whether a connector that makes more tasks than tasks.max fails. Deprecated in Kafka Connect."),
    ))  # fmt: skip
    order = _add_converters(made, given, config, 6)
    _add(made, TRANSFORMS, order, (
        ("transforms", Type.LIST, (), LOW, Width.LONG, "Transforms", UniqueAliases("transformation"),
         "Aliases of the transformations of records, in their order."),
    ))  # fmt: skip
    _add(made, PREDICATES, order + 1, (
        ("predicates", Type.LIST, (), LOW, Width.LONG, "Predicates", UniqueAliases("predicate"),
         "Aliases of the predicates that transformations use."),
    ))  # fmt: skip
    _add(made, COMMON, order + 2, (
        ("config.action.reload", Type.STRING, "restart", LOW, Width.MEDIUM, "Reload Action", one_of("none", "restart"),
         "Without effect: the config providers do not tell of changes. A restart of the connector reads the values again."),
    ))  # fmt: skip
    return _add(made, ERRORS, 1, (
        ("errors.retry.timeout", Type.LONG, 0, MEDIUM, Width.MEDIUM, "Retry Timeout for Errors", None,
         "How long a conversion is tried again while a registry is away, in milliseconds: 0 is not at all, -1 without end."),
        ("errors.retry.delay.max.ms", Type.LONG, 60_000, MEDIUM, Width.MEDIUM, "Maximum Delay Between Retries for Errors", None,
         "The longest pause between two tries, in milliseconds."),
        ("errors.tolerance", Type.STRING, "none", MEDIUM, Width.SHORT, "Error Tolerance", one_of("none", "all"),
         "none: an error ends the task. all: records with an error are left out."),
        ("errors.log.enable", Type.BOOLEAN, False, MEDIUM, Width.SHORT, "Log Errors", None,
         "Whether the log tells of each error, also of tolerated ones."),
        ("errors.log.include.messages", Type.BOOLEAN, False, MEDIUM, Width.SHORT, "Log Error Details", None,
         "Whether the log has the record that caused an error: its key, value and headers."),
    ))  # fmt: skip


def _add_converters(made: ConfigDef, given: Mapping[str, str], config: Mapping[str, str], order: int) -> int:
    """Add the keys of converters, from this order on; returns the order of what follows."""
    for name, (title, of) in CONVERTERS.items():
        what = title.split(" ")[0].lower()
        version = None if _class_of(config.get(name, given[name])) is None else barnabas.__version__
        made.define(
            name, Type.CLASS, _class_of(given[name]), importance=LOW, group=COMMON, order_in_group=order, width=Width.SHORT,
            display_name=f"{title} class", recommender=_plugins(of),
            documentation=f"The class that makes bytes of the {what}s of records, and reads them. By default that of the workers.",
        )  # fmt: skip
        made.define(
            f"{name}.{VERSION}", Type.STRING, version, importance=LOW, group=COMMON, order_in_group=order + 1,
            width=Width.SHORT, display_name=f"{title} version", validator=_version(), recommender=_versions(is_known=version is not None),
            documentation=f"The version of the class in {name}.",
        )  # fmt: skip
        order += 2
    return order


def _source(made: ConfigDef, worker: Mapping[str, str], config: Mapping[str, str]) -> ConfigDef:
    _add(made, TOPIC_CREATION, 1, (
        ("topic.creation.groups", Type.LIST, (), LOW, Width.LONG, "Topic Creation Groups", UniqueAliases("topic creation group"),
         "Groups of settings for topics that the source creates."),
    ))  # fmt: skip
    if topic_creation.is_used(config, worker):
        topic_creation.define(made, config)
    _add(made, EXACTLY_ONCE, 2, (
        ("exactly.once.support", Type.STRING, "requested", MEDIUM, Width.SHORT, "Exactly once support",
         ValidString(("REQUIRED", "REQUESTED"), is_case_sensitive=False), "Both are met: sources write exactly once."),
        ("transaction.boundary", Type.STRING, "poll", MEDIUM, Width.SHORT, "Transaction Boundary",
         ValidString(("INTERVAL", "POLL", "CONNECTOR"), is_case_sensitive=False),
         "poll and interval: a transaction has all that was read since the last one. connector: refused."),
        ("transaction.boundary.interval.ms", Type.LONG, None, LOW, Width.SHORT, "Transaction boundary interval", None,
         "Without effect: a transaction has all that was read since the last one."),
    ))  # fmt: skip
    return _add(made, OFFSETS_TOPIC, 1, (
        ("offsets.storage.topic", Type.STRING, None, LOW, Width.LONG, "Offsets topic", NonEmptyString(),
         "The topic of the connector's offsets; by default that of the workers."),
    ))  # fmt: skip


def _sink(made: ConfigDef) -> ConfigDef:
    for name, kind, default, title, says, validator in (
        ("topics", Type.LIST, (), "Topics", "The topics that the sink reads, as a list.", UniqueList()),
        (
            "topics.regex",
            Type.STRING,
            "",
            "Topics regex",
            "A regular expression of the topics that the sink reads, in place of topics.",
            None,
        ),
    ):
        made.define(
            name, kind, default, importance=HIGH, group=COMMON, order_in_group=4, width=Width.LONG, display_name=title,
            documentation=says, validator=validator,
        )  # fmt: skip
    return _add(made, ERRORS, 6, (
        ("errors.deadletterqueue.topic.name", Type.STRING, "", MEDIUM, Width.MEDIUM, "Dead Letter Queue Topic Name", None,
         "The topic for records with an error; empty: they go nowhere."),
        ("errors.deadletterqueue.topic.replication.factor", Type.SHORT, 3, MEDIUM, Width.MEDIUM,
         "Dead Letter Queue Topic Replication Factor", None, "The replication factor of that topic, if it is created."),
        ("errors.deadletterqueue.context.headers.enable", Type.BOOLEAN, False, MEDIUM, Width.MEDIUM,
         "Enable Error Context Headers", None, "Whether its records have headers that tell of the error (__connect.errors.*)."),
    ))  # fmt: skip


def _add(made: ConfigDef, group: str, first: int, rows: Iterable[tuple[Any, ...]]) -> ConfigDef:
    for order, (name, kind, default, importance, width, title, validator, says) in enumerate(rows, first):
        options = {} if default is ... else {"default": default}
        made.define(
            name, kind, importance=importance, documentation=says, validator=validator, group=group, order_in_group=order,
            width=width, display_name=title, recommender=_versions() if name.endswith(VERSION) else None, **options,
        )  # fmt: skip
    return made


def _class_of(name: str) -> str | None:
    """The full name of a worker's class; None for one that is not there: then each connector must name its own."""
    try:
        return catalog.find(name).name
    except catalog.UnknownPlugin:
        return None


def _plugins(kind: Kind) -> Recommender:
    return Recommender(lambda _name, _parsed: [each.name for each in catalog.plugins() if each.kind is kind])


def _versions(*, is_known: bool = True) -> Recommender:
    """The version of a class, if it is known; otherwise a page does not show the key."""
    versions = [barnabas.__version__] if is_known else []
    return Recommender(lambda _name, _parsed: versions, lambda _name, _parsed: is_known)


def _version() -> Validator:
    def check(name: str, value: Any) -> None:
        if value is not None and value != barnabas.__version__:
            raise invalid(name, value, f"Version not found, available versions: [{barnabas.__version__}]")

    return Checked(check, "valid plugin version")


def topics_errors(props: Mapping[str, str]) -> dict[str, list[str]]:
    """What is wrong with the topics of a sink, by key."""
    listed = props.get("topics", "").replace(" ", "").split(",")
    topics = listed if len(listed) > 1 else [each for each in listed if each]
    pattern, queue = props.get("topics.regex", "").strip(), props.get("errors.deadletterqueue.topic.name", "").strip()
    found: dict[str, list[str]] = {}
    if topics and pattern:
        text = "topics and topics.regex are mutually exclusive options, but both are set."
        found |= {"topics": [text], "topics.regex": [text]}
    if not topics and not pattern:
        found |= {"topics": [NOT_BOTH], "topics.regex": [NOT_BOTH]}
    if queue and queue in topics:
        raise ConfigError(
            f"The DLQ topic '{queue}' may not be included in the list of topics ('topics=[{', '.join(topics)}]') consumed by the connector"
        )
    if pattern:
        try:
            taken = java_pattern(pattern).fullmatch(queue) is not None and bool(queue)
        except re.error as error:
            return found | {"topics.regex": [str(invalid("topics.regex", pattern, f"Invalid regex: {error}"))]}
        if taken:
            found["topics.regex"] = [
                f"The DLQ topic '{queue}' may not be matched by the regex for the topics ('topics.regex={pattern}') consumed by the "
                "connector"
            ]
    return found
