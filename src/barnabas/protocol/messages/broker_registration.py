"""BrokerRegistrationRequest and BrokerRegistrationResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class Listener(Message):
    __slots__ = (
        "name",
        "host",
        "port",
        "security_protocol",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("host", "string"),
        FieldSpec("port", "uint16"),
        FieldSpec("security_protocol", "int16"),
    )

    def __init__(self, *, name: str = "", host: str = "", port: int = 0, security_protocol: int = 0) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port
        self.security_protocol: int = security_protocol


class Feature(Message):
    __slots__ = (
        "name",
        "min_supported_version",
        "max_supported_version",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string"),
        FieldSpec("min_supported_version", "int16"),
        FieldSpec("max_supported_version", "int16"),
    )

    def __init__(self, *, name: str = "", min_supported_version: int = 0, max_supported_version: int = 0) -> None:
        self.name: str = name
        self.min_supported_version: int = min_supported_version
        self.max_supported_version: int = max_supported_version


class BrokerRegistrationRequest(Message):
    __slots__ = (
        "broker_id",
        "cluster_id",
        "incarnation_id",
        "listeners",
        "features",
        "rack",
        "is_migrating_zk_broker",
        "log_dirs",
        "previous_broker_epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("broker_id", "int32"),
        FieldSpec("cluster_id", "string"),
        FieldSpec("incarnation_id", "uuid"),
        FieldSpec("listeners", "struct", is_array=True, item=Listener),
        FieldSpec("features", "struct", is_array=True, item=Feature),
        FieldSpec("rack", "string", first_nullable_version=0),
        FieldSpec("is_migrating_zk_broker", "bool", first_version=1),
        FieldSpec("log_dirs", "uuid", is_array=True, first_version=2),
        FieldSpec("previous_broker_epoch", "int64", first_version=3),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        cluster_id: str = "",
        incarnation_id: UUID = ZERO_UUID,
        listeners: Sequence[Listener] = (),
        features: Sequence[Feature] = (),
        rack: str | None = "",
        is_migrating_zk_broker: bool = False,
        log_dirs: Sequence[UUID] = (),
        previous_broker_epoch: int = -1,
    ) -> None:
        self.broker_id: int = broker_id
        self.cluster_id: str = cluster_id
        self.incarnation_id: UUID = incarnation_id
        self.listeners: Sequence[Listener] = listeners
        self.features: Sequence[Feature] = features
        self.rack: str | None = rack
        self.is_migrating_zk_broker: bool = is_migrating_zk_broker
        self.log_dirs: Sequence[UUID] = log_dirs
        self.previous_broker_epoch: int = previous_broker_epoch


class BrokerRegistrationResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "broker_epoch",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("broker_epoch", "int64"),
    )

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0, broker_epoch: int = -1) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.broker_epoch: int = broker_epoch
