"""References to config providers: what is resolved, and what stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.connect.references import Resolver, Unresolved, is_reference
from barnabas.errors import ConfigError

KAFKA = "org.apache.kafka.common.config.provider"


def resolver(**providers: str) -> Resolver:
    settings = {"config.providers": ",".join(providers)}
    return Resolver({**settings, **{f"config.providers.{name}.class": f"{KAFKA}.{cls}" for name, cls in providers.items()}})


def test_files_directories_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s.properties").write_text("user = u\npassword: p\\u00e4 \\\n  ss\n# no\n")
    (tmp_path / "token").write_text("t")
    monkeypatch.setenv("SECRET", "e")
    found = resolver(file="FileConfigProvider", dir="DirectoryConfigProvider", env="EnvVarConfigProvider").resolved({
        "a": f"${{file:{tmp_path}/s.properties:user}}:${{file:{tmp_path}/s.properties:password}}",
        "b": f"${{dir:{tmp_path}:token}}", "c": "${env:SECRET}", "d": "${env:NO_SUCH_VARIABLE}", "e": "${vault:x:y}", "f": "plain",
    })  # fmt: skip
    assert found == {"a": "u:pä ss", "b": "t", "c": "e", "d": "${env:NO_SUCH_VARIABLE}", "e": "${vault:x:y}", "f": "plain"}


def test_a_missing_file_is_named_and_a_path_beyond_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unresolved, match="Could not read properties from file /no/such"):
        resolver(file="FileConfigProvider").resolved({"a": "${file:/no/such:k}"})
    limited = Resolver({
        "config.providers": "file", "config.providers.file.class": "FileConfigProvider",
        "config.providers.file.param.allowed.paths": str(tmp_path),
    })  # fmt: skip
    with pytest.raises(Unresolved, match=r"not within the allowed\.paths"):
        limited.resolved({"a": f"${{file:{tmp_path}/../x:k}}"})


def test_an_unknown_provider_is_refused() -> None:
    with pytest.raises(ConfigError, match="FileConfigProvider, DirectoryConfigProvider, EnvVarConfigProvider"):
        resolver(x="VaultConfigProvider")


def test_references_are_recognised() -> None:
    assert is_reference("a${env:X}b")
    assert not is_reference("$env:X")
