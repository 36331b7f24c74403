"""Values that requests and answers carry and whose meaning the protocol fixes: brokers, clients and tools share them."""

from __future__ import annotations

from enum import IntEnum

NO_LEADER = NO_CONTROLLER = -1  # where a broker's id is due
ALL_BROKERS = ""  # the name under which settings stand that hold for every broker


class ResourceType(IntEnum):
    """What can have settings; numbers as in DescribeConfigs."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32
