"""The settings of clients in configs of connectors, by the policy of the workers; and what a config cannot have."""

from __future__ import annotations

import pytest

from barnabas.connect.herder.overrides import POLICY, override_errors, policy_of
from barnabas.connect.herder.validation import validate
from barnabas.connect.references import Resolver
from barnabas.errors import ConfigError

KEYS = ("producer.override.acks", "consumer.override.sasl.jaas.config", "file")


@pytest.mark.parametrize(
    ("policy", "forbidden"),
    [
        (None, []),
        ("All", []),
        ("None", ["producer.override.acks", "consumer.override.sasl.jaas.config"]),
        ("Principal", ["producer.override.acks"]),
        ("org.apache.kafka.connect.connector.policy.PrincipalConnectorClientConfigOverridePolicy", ["producer.override.acks"]),
    ],
)
def test_a_policy_forbids_settings_of_clients(policy: str | None, forbidden: list[str]) -> None:
    assert list(override_errors(KEYS, {} if policy is None else {POLICY: policy})) == forbidden


def test_a_policy_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"client\.config\.override\.policy.*one of All, None, Principal"):
        policy_of({POLICY: "Allowlist"})


def errors(config: dict[str, str], worker: dict[str, str]) -> dict[str, list[str]]:
    source = {"name": "s", "connector.class": "FileStreamSource", "file": "/tmp/in", "topic": "t", **config}
    values = [each["value"] for each in validate(source, worker, Resolver({}))["configs"]]
    return {each["name"]: each["errors"] for each in values if each["errors"]}


def test_a_config_is_checked_by_the_policy() -> None:
    found = errors({"producer.override.acks": "1"}, {POLICY: "None"})
    assert found == {
        "producer.override.acks": ["The 'None' policy does not allow 'acks' to be overridden in the connector configuration."]
    }


def test_a_source_does_not_end_its_transactions_itself() -> None:
    assert errors({"transaction.boundary": "interval", "exactly.once.support": "required"}, {}) == {}
    assert list(errors({"transaction.boundary": "connector"}, {})) == ["transaction.boundary"]
