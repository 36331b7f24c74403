"""Every broker key that Kafka 4.3 knows is known here, with its type.

`kafka_4.3_keys.txt` has what Kafka's AbstractKafkaConfig.CONFIG_DEF says: name, type, and whether Kafka shows it to tools.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.config import definitions
from barnabas.config.broker import BrokerConfig

KEYS = [line.split() for line in (Path(__file__).parent / "kafka_4.3_keys.txt").read_text().splitlines()]


def test_each_key_of_kafka_is_known() -> None:
    assert len(KEYS) > 300
    ours = {name: key.type.name for name, key in definitions.BROKER.items()}
    assert {name: ours.get(name) for name, kind, _ in KEYS} == {name: kind for name, kind, _ in KEYS}


def test_what_kafka_shows_to_nobody_is_not_shown() -> None:
    assert [name for name, _, shown in KEYS if definitions.BROKER[name].hidden is not (shown == "internal")] == []


def test_the_pause_between_unclean_elections_is_known() -> None:
    config, warnings = BrokerConfig.from_properties({"unclean.leader.election.interval.ms": "5"})
    assert config.unclean_leader_election_interval_ms == 5
    assert warnings == ("configuration key unclean.leader.election.interval.ms is accepted and has no effect",)
