"""Texts that are generated from the definitions: the reference page and the typed attributes of BrokerConfig.

`tools/generate_config.py` writes them; a test compares the files in the repository with these texts.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.config import definitions
from barnabas.config.config_key import ConfigKey, ConfigType, Effect

PYTHON_TYPES = {
    ConfigType.BOOLEAN: "bool",
    ConfigType.INT: "int",
    ConfigType.SHORT: "int",
    ConfigType.LONG: "int",
    ConfigType.DOUBLE: "float",
    ConfigType.LIST: "tuple[str, ...]",
}
ALWAYS_SET = {"log.dirs", "advertised.listeners"}  # these keys take another key's value if unset, see BrokerConfig

ATTRIBUTES_HEAD = '''"""The attributes of BrokerConfig, one for each key. Written by tools/generate_config.py; do not edit."""

from __future__ import annotations


class BrokerAttributes:
    """Annotations only; BrokerConfig fills them."""

'''

PAGE_HEAD = """# Configuration

Keys, types, defaults and importance are those of Apache Kafka 4.3; keys that begin with `confluent.` are Confluent Server's.
The column *effect* is ours: *honoured* keys work as
described. The others are accepted, checked and shown, so that existing files and tools work, but change nothing; the broker warns of
each one that is set. An unknown key is a warning; a value that is not allowed stops the start.

*Update* says whether a running broker takes a new value: *read-only* needs a restart, *per-broker* is set on one broker,
*cluster-wide* on one or on all.

This page is written by `tools/generate_config.py`.
"""


def attributes_source() -> str:
    """The source of `broker_attributes.py`."""
    lines = [f"    {key.attribute}: {_annotation(key)}\n" for key in definitions.BROKER.values()]
    return ATTRIBUTES_HEAD + "".join(lines)


def _annotation(key: ConfigKey) -> str:
    name = PYTHON_TYPES.get(key.type, "str")
    return name if key.default is not None or key.name in ALWAYS_SET else f"{name} | None"


def reference_page() -> str:
    """docs/reference/configuration.md."""
    others = (definitions.topic, definitions.group, definitions.client_metrics, definitions.link)
    parts = [PAGE_HEAD]
    parts += [_section(module.__doc__ or "", module.KEYS, of_broker=True) for module in definitions.BROKER_MODULES]
    parts += [_section(module.__doc__ or "", module.KEYS, of_broker=False) for module in others]
    parts.append(_section("Validation of schema ids of a topic", definitions.schema_validation.TOPIC_KEYS, of_broker=False))
    return "\n".join(parts)


def _section(title: str, keys: Iterable[ConfigKey], *, of_broker: bool) -> str:
    update = " update |" if of_broker else ""
    lines = [f"## {title.rstrip('.')}", "", f"| key | type | default | allowed | importance |{update} effect | meaning |"]
    lines.append("|---|---|---|---|---|" + ("---|" if of_broker else "") + "---|---|")
    for key in keys:
        cells = [
            f"`{key.name}`",
            key.type.name.lower(),
            _cell(key.default_text()),
            _cell(None if key.check is None else str(key.check)),
            key.importance.value,
        ]
        if of_broker:
            cells.append(key.scope.value)
        cells += ["honoured" if key.effect is Effect.HONOURED else "none", key.doc]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def _cell(text: str | None) -> str:
    return "" if text is None else f"`{text}`" if text else "(empty)"
