"""Definitions of config keys, as Kafka's ConfigDef: types, defaults, validators, groups, recommended values."""

from __future__ import annotations


class ConfigDef:
    """The definitions of the keys of a plug-in."""
