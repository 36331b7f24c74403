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
        ("name", "string", False, 0, 32767, 32767, 32767, None, None),
        ("host", "string", False, 0, 32767, 32767, 32767, None, None),
        ("port", "uint16", False, 0, 32767, 32767, 32767, None, None),
        ("security_protocol", "int16", False, 0, 32767, 32767, 32767, None, None),
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
        ("name", "string", False, 0, 32767, 32767, 32767, None, None),
        ("min_supported_version", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("max_supported_version", "int16", False, 0, 32767, 32767, 32767, None, None),
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
        ("broker_id", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("cluster_id", "string", False, 0, 32767, 32767, 32767, None, None),
        ("incarnation_id", "uuid", False, 0, 32767, 32767, 32767, None, None),
        ("listeners", "struct", True, 0, 32767, 32767, 32767, None, Listener),
        ("features", "struct", True, 0, 32767, 32767, 32767, None, Feature),
        ("rack", "string", False, 0, 32767, 0, 32767, None, None),
        ("is_migrating_zk_broker", "bool", False, 1, 32767, 32767, 32767, None, None),
        ("log_dirs", "uuid", True, 2, 32767, 32767, 32767, None, None),
        ("previous_broker_epoch", "int64", False, 3, 32767, 32767, 32767, None, None),
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
        ("throttle_time_ms", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("broker_epoch", "int64", False, 0, 32767, 32767, 32767, None, None),
    )

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0, broker_epoch: int = -1) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.broker_epoch: int = broker_epoch
