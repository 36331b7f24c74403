"""Passwords in configs: hidden in answers and errors, kept when a config comes back with them hidden."""

from __future__ import annotations

import json
from typing import Any

import pytest

import barnabas
from barnabas.connect import catalog
from barnabas.connect.api import Source
from barnabas.connect.catalog import Kind, Plugin
from barnabas.connect.config_def import ConfigDef, Type
from barnabas.connect.herder.validation import check, validate
from barnabas.connect.references import Resolver
from barnabas.connect.worker import masked, unmasked
from barnabas.web.routing import HttpError

CONFIG = {"connector.class": "Vault", "name": "v", "vault.password": "hunter2", "vault.user": "u"}


class Vault(Source):
    """A source with a password."""

    config = ConfigDef().define("vault.password", Type.PASSWORD).define("vault.user", Type.STRING, "")

    @classmethod
    def validate(cls, config: Any) -> dict[str, list[str]]:
        text = f"{config['vault.password']} is too short"
        return {"vault.password": [text], "vault.user": [text]} if len(config["vault.password"]) < 9 else {}


@pytest.fixture(autouse=True)
def vault(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Plugin("Vault", Kind.SOURCE, (), barnabas.__version__, lambda: Vault)
    installed = catalog._installed()
    monkeypatch.setattr(catalog, "_installed", lambda: (*installed, made))


def test_a_password_is_hidden_and_comes_back() -> None:
    shown = masked(CONFIG)
    assert shown == {**CONFIG, "vault.password": "[hidden]"}
    assert unmasked(shown, CONFIG) == CONFIG
    assert unmasked({**shown, "vault.password": "other"}, CONFIG)["vault.password"] == "other"
    reference = {**CONFIG, "vault.password": "${env:PASSWORD}"}
    assert masked(reference) == reference


def test_keys_that_no_definition_knows_are_judged_by_their_names() -> None:
    override = {**CONFIG, "producer.override.sasl.jaas.config": "hunter2", "x": "y"}
    assert masked(override)["producer.override.sasl.jaas.config"] == "[hidden]"
    assert masked({"connector.class": "io.debezium.Missing", "database.password": "hunter2", "database.user": "u"}) == {
        "connector.class": "io.debezium.Missing", "database.password": "[hidden]", "database.user": "u",
    }  # fmt: skip


def test_errors_do_not_say_a_password() -> None:
    with pytest.raises(HttpError) as raised:
        check(CONFIG, {}, Resolver({}))
    assert "hunter2" not in raised.value.message
    assert "[hidden] is too short" in raised.value.message


def test_a_reference_stands_for_its_value_in_answers_and_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "hunter2")
    resolver = Resolver({"config.providers": "env", "config.providers.env.class": "EnvVarConfigProvider"})
    report = validate({**CONFIG, "vault.password": "${env:PASSWORD}"}, {}, resolver)
    assert "hunter2" not in json.dumps(report)
    (found,) = [each["value"] for each in report["configs"] if each["value"]["name"] == "vault.password"]
    assert found["value"] == "${env:PASSWORD}"
    assert found["errors"] == ["${env:PASSWORD} is too short"]


def test_a_config_without_class_says_no_value() -> None:
    with pytest.raises(HttpError) as raised:
        check({"name": "v", "vault.password": "hunter2"}, {}, Resolver({}))
    assert raised.value.message == "Connector config {name=v, vault.password=[hidden]} contains no connector type"
