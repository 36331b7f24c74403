"""Definitions of config keys: values, errors and reports as Kafka's ConfigDef gives them."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.connect.aliases import enriched
from barnabas.connect.catalog import Kind
from barnabas.connect.config_def import (
    ConfigDef,
    ConfigError,
    Importance,
    ListSize,
    NonEmptyString,
    Password,
    Range,
    Recommender,
    Type,
    ValidString,
    one_of,
    report,
)
from barnabas.connect.definitions import connector, topics_errors


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Type.BOOLEAN, " TRUE ", True), (Type.STRING, " a ", "a"), (Type.INT, "-5", -5), (Type.SHORT, "32767", 32767),
        (Type.LONG, "9223372036854775807", 2**63 - 1), (Type.DOUBLE, "1e3", 1000.0), (Type.LIST, "a , b,,c", ["a", "b", "", "c"]),
        (Type.LIST, " ", []), (Type.PASSWORD, "p", Password("p")), (Type.DOUBLE, 3, 3.0),
        (Type.CLASS, "FileStreamSource", "org.apache.kafka.connect.file.FileStreamSourceConnector"),
    ],
)  # fmt: skip
def test_text_becomes_a_value_of_the_type(kind: Type, text: Any, value: Any) -> None:
    assert ConfigDef().define("k", kind).parse({"k": text}) == {"k": value}


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        (Type.BOOLEAN, "maybe", "Expected value to be either true or false"),
        (Type.INT, "2147483648", "Not a number of type INT"),
        (Type.INT, "1_0", "Not a number of type INT"),
        (Type.SHORT, "x", "Not a number of type SHORT"),
        (Type.LONG, "9" * 30, "Not a number of type LONG"),
        (Type.DOUBLE, "1__0", "Not a number of type DOUBLE"),
        (Type.CLASS, "Nope", "Class Nope could not be found."),
        (Type.INT, True, "Expected value to be a 32-bit integer"),
    ],
)
def test_other_values_are_refused(kind: Type, text: Any, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        ConfigDef().define("k", kind).parse({"k": text})
    assert str(raised.value) == f"Invalid value {'true' if text is True else text} for configuration k: {says}"


@pytest.mark.parametrize(
    ("validator", "value", "says"),
    [
        (Range(1), 0, "Value must be at least 1"), (Range(None, 5), 6, "Value must be no more than 5"),
        (one_of("a", "b"), "c", "String must be one of: a, b"), (ListSize(1), ["a", "b"], "exceeds maximum list size of [1]."),
        (ValidString(("a",), is_case_sensitive=False), "b", "String must be one of (case insensitive): a"),
        (NonEmptyString(), "", "String must be non-empty"),
    ],
)  # fmt: skip
def test_validators_say_what_is_wrong(validator: Any, value: Any, says: str) -> None:
    with pytest.raises(ConfigError, match="for configuration k: ") as raised:
        validator("k", value)
    assert str(raised.value).endswith(f": {says}")


def test_a_missing_key_is_named() -> None:
    with pytest.raises(ConfigError, match='Missing required configuration "k" which has no default value'):
        ConfigDef().define("k", Type.STRING).parse({})


def test_a_wrong_default_and_a_second_definition_are_refused() -> None:
    with pytest.raises(ConfigError, match="Value must be at least 1"):
        ConfigDef().define("k", Type.INT, 0, validator=Range(1))
    with pytest.raises(ConfigError, match="Configuration k is defined twice"):
        ConfigDef().define("k", Type.INT, 1).define("k", Type.INT, 1)


def test_secrets_stay_hidden_in_every_text() -> None:
    definition = ConfigDef().define("password", Type.PASSWORD, "default")
    secret = definition.parse({"password": "hunter2"})["password"]
    assert secret.value == "hunter2"
    shown = f"{secret} {secret!r} {[secret]} {report('c', definition, definition.validate({'password': 'hunter2'}))}"
    assert "hunter2" not in shown
    assert "default'" not in shown.replace("default_value'", "")


def test_recommended_values_depend_on_other_keys() -> None:
    definition = (
        ConfigDef()
        .define("a", Type.STRING, "x", dependents=["b"])
        .define(
            "b", Type.STRING, "1",
            recommender=Recommender(lambda _, parsed: ["1", "2"] if parsed["a"] == "y" else [], lambda _, parsed: parsed["a"] == "y"),
        )
    )  # fmt: skip
    assert [(each.recommended, each.is_visible) for each in definition.validate({"a": "y"}).values()] == [
        ([], True),
        (["1", "2"], True),
    ]
    assert [(each.recommended, each.is_visible) for each in definition.validate({}).values()] == [([], True), ([], False)]
    with pytest.raises(ConfigError, match="referred in the dependents, but not defined: c"):
        ConfigDef().define("a", Type.STRING, "x", dependents=["c"]).parse({})


def test_a_report_counts_all_errors_and_keeps_the_order() -> None:
    definition = ConfigDef().define("b", Type.INT, 1, group="G", importance=Importance.LOW).define("a", Type.STRING)
    found = report("some.Class", definition, definition.validate({"b": "x"}))
    assert found["name"] == "some.Class"
    assert found["error_count"] == 2
    assert found["groups"] == ["G"]
    assert [each["definition"]["name"] for each in found["configs"]] == ["b", "a"]
    assert found["configs"][0]["value"] == {
        "name": "b", "value": None, "recommended_values": [], "visible": True,
        "errors": ["Invalid value x for configuration b: Not a number of type INT"],
    }  # fmt: skip


def test_embedded_keys_come_by_need_importance_and_name() -> None:
    inner = ConfigDef()
    for name, default in (("low", "1"), ("must", None), ("also", None)):
        options: dict[str, Any] = {} if default is None else {"default": default}
        inner.define(name, Type.INT, validator=Range(0), group="In" if name == "low" else None, **options)
    outer = ConfigDef().embed("p.", "Outer", 2, inner)
    assert [(key.name, key.group, key.order_in_group) for key in outer] == [
        ("p.also", "Outer", 2), ("p.must", "Outer", 3), ("p.low", "Outer: In", 4),
    ]  # fmt: skip
    assert outer.validate({"p.low": "-1"})["p.low"].errors == ["Invalid value -1 for configuration low: Value must be at least 0"]


def test_connectors_have_the_keys_of_kafka_connect() -> None:
    source, sink = connector({}, Kind.SOURCE), connector({}, Kind.SINK)
    assert source.groups == [
        "Common", "Transforms", "Predicates", "Error Handling", "Topic Creation", "Exactly Once Support", "offsets.topic",
    ]  # fmt: skip
    assert len(source.keys) == 24
    assert len(sink.keys) == 24
    errors = source.validate({"name": "", "tasks.max": "0", "transforms": "a,a"})
    assert errors["name"].errors == ["Invalid value  for configuration name: String may not be empty"]
    assert errors["tasks.max"].errors == ["Invalid value 0 for configuration tasks.max: Value must be at least 1"]
    assert errors["transforms"].errors == ["Invalid value [a, a] for configuration transforms: Duplicate alias provided."]


def test_a_sink_needs_topics_in_one_way() -> None:
    assert set(topics_errors({})) == set(topics_errors({"topics": "a", "topics.regex": "b"})) == {"topics", "topics.regex"}
    assert topics_errors({"topics": "a"}) == topics_errors({"topics.regex": "a.*"}) == {}
    with pytest.raises(ConfigError, match="DLQ topic 'b' may not be included"):
        topics_errors({"topics": "a, b", "errors.deadletterqueue.topic.name": "b"})


def test_an_alias_adds_its_keys() -> None:
    found = enriched(connector({}), {"transforms": "a", "transforms.a.type": "Nope", "predicates": "p"})
    assert found.groups[-2:] == ["Transforms: a", "Predicates: p"]
    values = found.validate({"transforms": "a", "transforms.a.type": "Nope"})
    assert values["transforms.a.type"].errors == [
        "Invalid value Nope for configuration transforms.a.type: Class Nope could not be found."
    ]
    assert values["predicates.p.type"].errors == [
        'Missing required configuration "predicates.p.type" which has no default value.'
    ]
