"""Direct access of commands to a cluster's metadata: the address comes from `--metadata`, the credentials from the environment.

The process list and the shell's history show options, so there are no options for secrets.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from barnabas.cli.errors import BadInput
from barnabas.cli.properties import read_properties_file
from barnabas.config.providers import fill_placeholders
from barnabas.errors import ConfigError

if TYPE_CHECKING:
    from barnabas.cluster.zookeeper.address import ZooKeeperAddress
    from barnabas.cluster.zookeeper.store import ZooKeeperStore

DIGEST_VARIABLE = "BARNABAS_ZOOKEEPER_DIGEST"  # sets `zookeeper.digest`
# path of a file with `zookeeper.*` settings; the settings file of a broker works too
CONFIG_VARIABLE = "BARNABAS_ZOOKEEPER_CONFIG"
PREFIX, CONNECT = "zookeeper.", "zookeeper.connect"


def environment_settings() -> dict[str, str]:
    """The `zookeeper.*` settings that the environment gives, without the address; raises BadInput."""
    found: dict[str, str] = {}
    if CONFIG_VARIABLE in os.environ:
        try:
            named = fill_placeholders(read_properties_file(os.environ[CONFIG_VARIABLE]))
        except ConfigError as error:
            raise BadInput(str(error)) from error
        found = {key: value for key, value in named.items() if key.startswith(PREFIX) and key != CONNECT}
    if DIGEST_VARIABLE in os.environ:
        found["zookeeper.digest"] = os.environ[DIGEST_VARIABLE]
    return found


def address_of(metadata: str) -> ZooKeeperAddress:
    """Raises BadInput."""
    from barnabas.cluster.zookeeper.address import parse_address

    try:
        return parse_address(metadata)
    except ValueError as error:
        raise BadInput(f"--metadata: {error}") from error


def open_store(address: ZooKeeperAddress) -> ZooKeeperStore:
    """Open a session; raises BadInput for invalid settings in the environment, and StoreUnavailable."""
    from barnabas.cluster.zookeeper.access import access_of
    from barnabas.cluster.zookeeper.store import ZooKeeperStore
    from barnabas.config.broker import BrokerConfig

    try:
        config, _ = BrokerConfig.from_properties(environment_settings())
        return ZooKeeperStore(address, access=access_of(config))
    except ConfigError as error:
        raise BadInput(str(error)) from error
