"""Short names for the columns of the tables beside this file."""

from __future__ import annotations

import sys

from barnabas.config.config_key import ConfigType, Effect, Importance, Scope

BOOLEAN, STRING, INT, SHORT, LONG = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.SHORT,
    ConfigType.LONG,
)
DOUBLE, LIST, CLASS, PASSWORD = ConfigType.DOUBLE, ConfigType.LIST, ConfigType.CLASS, ConfigType.PASSWORD
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
READ_ONLY, PER_BROKER, CLUSTER_WIDE = Scope.READ_ONLY, Scope.PER_BROKER, Scope.CLUSTER_WIDE
HONOURED, NO_EFFECT = Effect.HONOURED, Effect.NONE
MAX_INT, MAX_LONG, MAX_DOUBLE = 2**31 - 1, 2**63 - 1, sys.float_info.max
