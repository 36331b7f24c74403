"""Every key that is said to be honoured is read by the code, and one that is said to have no effect is not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from barnabas.config import definitions
from barnabas.config.config_key import ConfigKey, Effect

SOURCE = Path(__file__).resolve().parents[2] / "src/barnabas"
LISTS = {  # modules that name keys to describe them, and do not use the values
    "config/broker_attributes.py",
    "config/describe.py",
    "config/reference.py",
    "config/synonyms.py",
}
# not code of the broker, or names of the protocol; but brokers use the keys of `client` among themselves
ELSEWHERE = (
    "config/definitions/",
    "protocol/messages/",
    "cli/",
    "testing/",
)
READ_WITHOUT_EFFECT = {
    "metric.reporters": "a worker of Connect says the same of its own key",
    "socket.connection.setup.timeout.max.ms": "a worker of Connect takes a key of the same name",
    "remote.storage.enable": "a topic that asks for it is refused",
    **dict.fromkeys(("background.threads", "num.io.threads", "num.network.threads"), "a change is held to Kafka's bounds"),
}
KEYS = [*definitions.BROKER.values(), *definitions.TOPIC.values(), *definitions.GROUP.values()]


def words_of_the_broker() -> set[str]:
    """Every attribute that is read, and every text, in what runs in a broker."""
    found = set[str]()
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        if name in LISTS or name.startswith(ELSEWHERE):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


@pytest.fixture(scope="module")
def words() -> set[str]:
    return words_of_the_broker()


def is_read(key: ConfigKey, words: set[str]) -> bool:
    return key.attribute in words or key.name in words


def test_an_honoured_key_is_read(words: set[str]) -> None:
    honoured = [key for key in KEYS if key.effect is Effect.HONOURED]
    assert [key.name for key in honoured if not is_read(key, words)] == []


def test_a_key_without_effect_is_not_read(words: set[str]) -> None:
    idle = [key for key in KEYS if key.effect is Effect.NONE]
    assert {key.name for key in idle if is_read(key, words)} == READ_WITHOUT_EFFECT.keys()
