"""Keys that name a guarding class: what is taken, what keeps a broker from starting, and with which line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.config import definitions
from barnabas.config.broker import BrokerConfig
from barnabas.config.config_key import ConfigType, Effect
from barnabas.config.guards import Guard
from barnabas.config.settings import check_broker
from barnabas.errors import ConfigError, KafkaError
from tests.plugins.samples import HERE

SECURITY = "org.apache.kafka.common.security."
GUARDS = [name for name, key in definitions.BROKER.items() if isinstance(key.check, Guard)]
MERE = {  # keys that name a class without a guard: the broker logs in to other servers with these
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.oauthbearer.jwt.retriever.class",
}


def test_each_key_that_names_a_class_is_classified() -> None:
    classes = {name for name, key in definitions.BROKER.items() if key.type is ConfigType.CLASS}
    assert classes == {name for name in GUARDS if definitions.BROKER[name].type is ConfigType.CLASS} | MERE
    assert all(definitions.BROKER[name].effect is Effect.NONE for name in MERE)


@pytest.mark.parametrize(
    "key", [*GUARDS, "listener.name.plaintext.principal.builder.class", "listener.name.x.ssl.engine.factory.class"]
)
@pytest.mark.parametrize("value", ["com.example.Guard", "", "python:", "python:module", "python:a.b:C.D", "python:a b:C"])
def test_a_java_class_that_guards_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.from_properties({key: value})
    assert refused.value.key == key.removeprefix("listener.name.plaintext.").removeprefix("listener.name.x.")
    assert "Java classes do not run here; " in str(refused.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("principal.builder.class", f"{SECURITY}authenticator.DefaultKafkaPrincipalBuilder"),
        ("ssl.engine.factory.class", f"{SECURITY}ssl.DefaultSslEngineFactory"),
        ("sasl.oauthbearer.jwt.validator.class", f"{SECURITY}oauthbearer.DefaultJwtValidator"),
        ("sasl.server.callback.handler.class", f"{SECURITY}oauthbearer.OAuthBearerValidatorCallbackHandler"),
        ("sasl.server.callback.handler.class", f"{SECURITY}plain.internals.PlainServerCallbackHandler"),
        ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
    ],
)
def test_kafkas_own_classes_are_taken(key: str, value: str) -> None:
    BrokerConfig.from_properties({key: value})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("python:tests.plugins.nowhere:Topics", "a class that can be imported: ModuleNotFoundError: No module named"),
        (f"{HERE}Nowhere", "a class that can be imported: AttributeError: module"),
        (f"{HERE}Unrelated", "a class that derives from barnabas.plugins.CreateTopicPolicy"),
        (f"{HERE}Settings", "a class that derives from barnabas.plugins.CreateTopicPolicy"),
        (f"{HERE}NotConfigured", "a class that can be created and configured: ValueError: the key my.own.key is missing"),
        ("com.example.Policy", "Java classes do not run here"),
    ],
)
def test_a_broker_without_its_guard_does_not_start(tmp_path: Path, value: str, reason: str) -> None:
    command = [sys.executable, "-m", "barnabas.cli", "broker", "start", "--data-dir", str(tmp_path), "--config"]
    done = subprocess.run(
        [*command, f"create.topic.policy.class.name={value}"],
        capture_output=True, text=True, check=False, timeout=60, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.startswith(f"barnabas: invalid value '{value}' for create.topic.policy.class.name: ")
    assert reason in done.stderr


def test_who_may_change_settings_chooses_no_code() -> None:
    with pytest.raises(KafkaError, match="only the configuration that a broker starts with may name a Python class"):
        check_broker({"listener.name.plaintext.principal.builder.class": f"{HERE}Names"}, of_all_brokers=False)
