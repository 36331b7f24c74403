"""Values in requests and responses with a fixed meaning in the protocol, shared by brokers, clients and tools."""

from __future__ import annotations

from enum import IntEnum

NO_LEADER = NO_CONTROLLER = -1  # in place of a broker id
ALL_BROKERS = ""  # resource name of the settings that apply to all brokers


class ResourceType(IntEnum):
    """The types of resources with settings; numbers as in DescribeConfigs."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
    LINK = 64  # a mirror link to another cluster; Kafka has none


USER_CREDENTIALS = (
    65  # in DescribeConfigs: the SCRAM credentials of all users, for a mirror link; no settings, and Kafka has none
)
