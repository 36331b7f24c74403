"""Our broker's description of every setting, compared with the recorded one of Kafka."""

from __future__ import annotations

import pytest

from barnabas.testing import Broker
from tests.differential.settings.known import KNOWN, PAGE, page_with
from tests.differential.settings.walk import STATIC, Table, load, walk
from tests.differential.talk import Address

RESOURCES = ("topic", "broker", "all brokers", "group", "client metrics")


@pytest.fixture(scope="module")
def ours() -> Table:
    with Broker(config=STATIC) as broker:
        return walk(Address.of(broker.bootstrap_servers))


@pytest.mark.parametrize("resource", RESOURCES)
def test_keys_come_from_where_they_come_from_in_kafka(resource: str, ours: Table) -> None:
    of_kafka, here = load()[resource], ours[resource]
    assert of_kafka
    differing = {key for key in of_kafka.keys() | here.keys() if of_kafka.get(key) != here.get(key)}
    known = {key for kind, key in KNOWN if kind == resource}
    assert differing == known, {key: (of_kafka.get(key), here.get(key)) for key in differing ^ known}


def test_every_resource_was_recorded() -> None:
    assert tuple(load()) == RESOURCES


def test_the_page_on_compatibility_shows_what_differs() -> None:
    text = PAGE.read_text()
    assert text == page_with(text), "write it anew: python -m tests.differential.settings.record --page"
