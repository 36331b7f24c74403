"""Placeholders in settings, filled from files and the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config.providers import PACKAGE, fill_placeholders
from barnabas.errors import ConfigError

FILE = {"config.providers": "file", "config.providers.file.class": f"{PACKAGE}FileConfigProvider"}
DIRECTORY = {"config.providers": "dir", "config.providers.dir.class": f"{PACKAGE}DirectoryConfigProvider"}
ENVIRONMENT = {"config.providers": "env", "config.providers.env.class": f"{PACKAGE}EnvVarConfigProvider"}


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    path = tmp_path / "secrets.properties"
    path.write_text("password=geheim\nother=more\n")
    return path


def test_a_key_of_a_file_stands_where_its_placeholder_stood(secrets: Path) -> None:
    text = f'user="a" password="${{file:{secrets}:password}}" other="${{file:{secrets}:other}}";'
    filled = fill_placeholders({**FILE, "sasl.jaas.config": text, "log.dirs": "d"})
    assert filled == {"config.providers": "file", "sasl.jaas.config": 'user="a" password="geheim" other="more";', "log.dirs": "d"}


def test_a_file_of_a_directory_is_the_value_without_its_line_end(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("geheim\n")
    assert fill_placeholders({**DIRECTORY, "k": f"${{dir:{tmp_path}:password}}"})["k"] == "geheim"


def test_a_variable_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_SECRET", "geheim")
    assert fill_placeholders({**ENVIRONMENT, "k": "${env:BROKER_SECRET}"})["k"] == "geheim"
    assert fill_placeholders({**ENVIRONMENT, "k": "${env::BROKER_SECRET}"})["k"] == "geheim"


def test_what_is_no_placeholder_of_a_named_provider_stays(secrets: Path) -> None:
    text = f"${{vault:a:b}} ${{file:{secrets}:password ${{x}}"
    assert fill_placeholders({"k": text})["k"] == text
    assert fill_placeholders({**FILE, "k": "${vault:a:b} $5"})["k"] == "${vault:a:b} $5"


@pytest.mark.parametrize(
    ("provider", "placeholder", "reason"),
    [
        (FILE, "${file:/nowhere/at/all:password}", "No such file or directory"),
        (FILE, "${file:SECRETS:missing}", "the file has no key missing"),
        ({**FILE, "config.providers.file.param.allowed.paths": "/etc"}, "${file:SECRETS:password}", "not within allowed.paths"),
        (DIRECTORY, "${dir:FOLDER:../secrets.properties}", "the name of a file in the directory"),
        (ENVIRONMENT, "${env:NOBODY_SETS_THIS}", "the variable is not set"),
        (ENVIRONMENT, "${env:path:HOME}", "a variable has no path"),
        ({**ENVIRONMENT, "config.providers.env.param.allowlist.pattern": "KAFKA_.*"}, "${env:HOME}", "allowlist.pattern"),
    ],
)
def test_what_cannot_be_filled_is_told_without_the_value_around_it(
    provider: dict[str, str], placeholder: str, reason: str, secrets: Path
) -> None:
    placeholder = placeholder.replace("SECRETS", str(secrets)).replace("FOLDER", str(secrets.parent))
    with pytest.raises(ConfigError, match=reason) as raised:
        fill_placeholders({**provider, "sasl.jaas.config": f'secret="hidden" password="{placeholder}"'})
    assert (raised.value.key, raised.value.value) == ("sasl.jaas.config", placeholder)


@pytest.mark.parametrize("given", [{}, {"config.providers.x.class": "org.example.Vault"}])
def test_a_provider_that_is_not_known_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"one of .*FileConfigProvider") as raised:
        fill_placeholders({"config.providers": "x", **given})
    assert raised.value.key == "config.providers.x.class"
