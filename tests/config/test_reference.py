"""The files that are generated from the definitions are current."""

from __future__ import annotations

from pathlib import Path

from barnabas.config import definitions
from barnabas.config.broker import BrokerConfig
from barnabas.config.broker_attributes import BrokerAttributes
from barnabas.config.reference import attributes_source, reference_page

ROOT = Path(__file__).resolve().parents[2]


def test_the_reference_page_is_current() -> None:
    assert (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8") == reference_page()


def test_the_attributes_are_current() -> None:
    assert (ROOT / "src/barnabas/config/broker_attributes.py").read_text(encoding="utf-8") == attributes_source()


def test_every_key_is_an_attribute_and_on_the_page() -> None:
    page = reference_page()
    made, _ = BrokerConfig.from_properties({})
    for key in definitions.BROKER.values():
        assert key.attribute in BrokerAttributes.__annotations__
        assert hasattr(made, key.attribute)
        assert f"`{key.name}`" in page
