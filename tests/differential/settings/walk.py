"""The output of DescribeConfigs for every key of a fresh topic, broker, group and client-metrics subscription, as a table to
compare.

Of a key: where its value comes from, the names and sources of its synonyms in their order, its type, whether it is a secret, and whether
it can be changed. Values are left out, but for defaults: those of a file are of one run, and answers about values have scenarios.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from barnabas.config.describe import Source
from barnabas.protocol.messages.describe_configs import DescribeConfigsResourceResult
from tests.differential.runner import CONFIG
from tests.differential.script.configs import BROKER, CLIENT_METRICS, GROUP, TOPIC, _describe
from tests.differential.talk import Address, Talk

GOLDEN = Path(__file__).parent / "golden.json"
# Settings that a single Kafka node needs in its file. Both brokers get them, so that the same keys come from a file.
STATIC = {
    **CONFIG,
    "node.id": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
Table = dict[str, dict[str, Any]]


def walk(address: Address) -> Table:
    """Resource -> key -> what is said of it."""
    talk = Talk(address, "settings")
    try:
        resources = {
            "topic": (TOPIC, talk.create("fresh")),
            "broker": (BROKER, str(talk.node_id)),
            "all brokers": (BROKER, ""),
            "group": (GROUP, "fresh"),
            "client metrics": (CLIENT_METRICS, "fresh"),
        }
        table: Table = {}
        for name, resource in resources.items():
            (result,) = talk.do(_describe(*resource, full=True), 4).results
            assert not result.error_code
            table[name] = {entry.name: _said(entry) for entry in sorted(result.configs, key=lambda each: each.name)}
        return table
    finally:
        talk.close()


def _said(entry: DescribeConfigsResourceResult) -> list[Any]:
    synonyms = [
        f"{each.name} {Source(each.source).name}" + (f" {each.value}" if each.source == Source.DEFAULT else "")
        for each in entry.synonyms
    ]
    kind = f"type {entry.config_type}" + " secret" * entry.is_sensitive + " read-only" * entry.read_only
    return [Source(entry.config_source).name, kind, *synonyms]


def load() -> Table:
    """Kafka's."""
    table: Table = json.loads(GOLDEN.read_text())
    return table


def as_text(table: Table) -> str:
    """A line for each key, so that a change of Kafka's shows as a change of lines."""
    blocks = []
    for name, keys in table.items():
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(said)}" for key, said in keys.items())
        blocks.append(f" {json.dumps(name)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"
