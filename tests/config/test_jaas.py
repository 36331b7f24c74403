"""Login contexts in JAAS syntax, and what a listener makes of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.broker import BrokerConfig
from barnabas.config.describe import Layers, broker_entries
from barnabas.config.jaas import JaasError, LoginContext, parse, quote
from barnabas.config.sasl import mechanisms_of
from barnabas.errors import ConfigError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
LISTENERS = {"listeners": "SECURE://:9092", "listener.security.protocol.map": "SECURE:SASL_PLAINTEXT"}


def test_modules_with_options_and_comments() -> None:
    text = f"""{PLAIN} required // the users
        username=admin password='it\\'s "me"' /* and
        the others */ user_alice="a=b;c";
        x.Other OPTIONAL;"""
    first, second = parse(text)
    assert (first.name, first.flag) == ("PlainLoginModule", "required")
    assert first.options == {"username": "admin", "password": 'it\'s "me"', "user_alice": "a=b;c"}
    assert (second.module, second.flag, second.options) == ("x.Other", "optional", {})
    assert "it's" not in repr(first)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "Login module not specified"), ("  // nothing", "Login module not specified"), (";", "Login module not specified"),
        ("A", "Login module control flag not specified"), ("A sometimes;", "Invalid login module control flag"),
        ("A required", "not terminated by semi-colon"), ("A required a=b", "not terminated by semi-colon"),
        ("A required a;", "Value not specified for key 'a'"), ("A required a=;", "Value not specified for key 'a'"),
        ('A required "secret";', "Value not specified for key ''"),
        ("A required a b;", "Value not specified for key 'a'"), ('A required a="secret', "cannot be read at character 14"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(text: str, told: str) -> None:
    with pytest.raises(JaasError, match=told) as caught:
        parse(text)
    assert "secret" not in str(caught.value)


@given(st.text())
def test_any_value_can_be_quoted(value: str) -> None:
    (found,) = parse(f"A required x={quote(value)};")
    assert found.options == {"x": value}


def written(context: LoginContext) -> str:
    options = " ".join(f"{quote(name)}={quote(value)}" for name, value in context.options.items())
    return f"{quote(context.module)} {context.flag} {options};"


@given(st.text() | st.lists(st.sampled_from(["A", "required", "x", "=", '"y"', ";", "//", "\n"])).map(" ".join))
def test_garbage_is_refused_or_read(text: str) -> None:
    """A text that is accepted has the same meaning after it is written down and read again."""
    try:
        found = parse(text)
    except JaasError:
        return
    assert parse(" ".join(map(written, found))) == found


def read(**settings: str) -> BrokerConfig:
    config, warnings = BrokerConfig.from_properties({**LISTENERS, **settings})
    assert not warnings
    return config


def test_the_setting_of_listener_and_mechanism_goes_before_the_others() -> None:
    settings = {
        "sasl.enabled.mechanisms": "PLAIN",
        "connections.max.reauth.ms": "1",
        "sasl.jaas.config": f"{PLAIN} required user_a=x;",
    }
    assert mechanisms_of(read(**settings), "SECURE")["PLAIN"].users == {"a": "x"}
    settings["listener.name.secure.sasl.jaas.config"] = f"{PLAIN} required user_b=y;"
    settings["listener.name.secure.connections.max.reauth.ms"] = "2"
    found = mechanisms_of(read(**settings), "SECURE")["PLAIN"]
    assert (found.users, found.max_reauth_ms) == ({"b": "y"}, 2)
    settings["listener.name.secure.plain.sasl.jaas.config"] = f"x.Other required; {PLAIN} required user_c=z;"
    settings["listener.name.secure.plain.connections.max.reauth.ms"] = "3"
    found = mechanisms_of(read(**settings), "SECURE")["PLAIN"]
    assert (found.users, found.max_reauth_ms) == ({"c": "z"}, 3)
    changed = read(**settings).with_dynamic({"listener.name.secure.plain.sasl.jaas.config": f"{PLAIN} required user_d=w;"})
    assert mechanisms_of(changed, "SECURE")["PLAIN"].users == {"d": "w"}


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"sasl.enabled.mechanisms": ""}, "sasl.enabled.mechanisms"),
        ({"sasl.enabled.mechanisms": "MAGIC"}, "sasl.enabled.mechanisms"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "listener.name.secure.plain.sasl.jaas.config"),
        (
            {"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": f"{PLAIN} required password=geheim;"},
            "plain.sasl.jaas.config",
        ),
        ({"sasl.enabled.mechanisms": "PLAIN", "sasl.jaas.config": f"{PLAIN} required password=geheim"}, "sasl.jaas.config"),
    ],
)
def test_a_listener_that_nobody_could_log_in_to(settings: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(**settings)
    assert key in caught.value.key
    assert "geheim" not in str(caught.value)


def test_login_contexts_are_never_shown() -> None:
    settings = {
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.jaas.config": f"{PLAIN} required user_a=geheim;",
        "listener.name.secure.plain.sasl.jaas.config": f"{PLAIN} required user_a=geheim;",
    }
    entries = broker_entries(Layers(read(**settings), settings, settings))
    assert len([entry for entry in entries if "jaas" in entry.name]) == 2
    assert "geheim" not in str(entries)
    assert "geheim" not in repr(read(**settings))
