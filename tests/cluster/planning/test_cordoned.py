"""Which brokers take new partitions, by what they registered with and by their dynamic settings."""

from __future__ import annotations

import pytest

from barnabas.cluster.metadata.image import BrokerRegistration, MetadataImage
from barnabas.cluster.metadata.store_entries import BROKERS, decode_broker, encode_broker
from barnabas.cluster.store.interface import Entry
from barnabas.config.cordoning import check_cordoned, cordoned_among
from barnabas.errors import ConfigError
from barnabas.protocol.values import ResourceType

DIRS = ("/data/one", "/data/two")


def is_open(*, static: tuple[str, ...] = (), dynamic: str | None = None) -> bool:
    broker = BrokerRegistration(7, (), log_dir_paths=DIRS, cordoned=static)
    configs = {} if dynamic is None else {(ResourceType.BROKER, "7"): {"cordoned.log.dirs": dynamic}}
    image = MetadataImage("c", brokers={7: broker}, configs=configs)
    return image.has_open_log_dir(image.brokers[7])


def test_a_broker_takes_partitions_while_one_directory_is_open() -> None:
    assert is_open()
    assert is_open(static=("/data/one",))
    assert not is_open(static=DIRS)
    assert not is_open(static=("*",))
    assert not is_open(dynamic="/data/two,/data/one")
    assert is_open(dynamic="/data/two")


def test_dynamic_settings_stand_over_what_it_started_with() -> None:
    assert is_open(static=("*",), dynamic="")
    assert not is_open(static=("/data/one",), dynamic="*")


def test_a_broker_of_which_no_directories_are_known_takes_partitions() -> None:
    """One that registered before they were told."""
    image = MetadataImage("c", brokers={7: BrokerRegistration(7, ())})
    assert image.has_open_log_dir(image.brokers[7])


def test_a_registration_carries_the_directories() -> None:
    broker = BrokerRegistration(7, (), log_dirs=("id",), log_dir_paths=DIRS, cordoned=("/data/two",))
    assert decode_broker(Entry(f"{BROKERS}7", encode_broker(broker), 0)) == broker


def test_only_known_directories_are_cordoned_however_they_are_written() -> None:
    assert cordoned_among(["/data/./two/"], DIRS) == {"/data/two"}
    assert cordoned_among(["*"], DIRS) == set(DIRS)
    check_cordoned(["/data/two"], DIRS)
    check_cordoned(["*"], DIRS)
    with pytest.raises(ConfigError, match="missing are /nowhere"):
        check_cordoned(["/data/one", "/nowhere"], DIRS)
    with pytest.raises(ConfigError, match="must not contain other values"):
        check_cordoned(["*", "/data/one"], DIRS)
