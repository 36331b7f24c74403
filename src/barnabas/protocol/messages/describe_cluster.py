"""DescribeClusterRequest and DescribeClusterResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class DescribeClusterRequest(Message):
    __slots__ = (
        "include_cluster_authorized_operations",
        "endpoint_type",
        "include_fenced_brokers",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("include_cluster_authorized_operations", "bool"),
        FieldSpec("endpoint_type", "int8", first_version=1),
        FieldSpec("include_fenced_brokers", "bool", first_version=2),
    )

    def __init__(
        self, *, include_cluster_authorized_operations: bool = False, endpoint_type: int = 1, include_fenced_brokers: bool = False
    ) -> None:
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        self.endpoint_type: int = endpoint_type
        self.include_fenced_brokers: bool = include_fenced_brokers


class DescribeClusterBroker(Message):
    __slots__ = (
        "broker_id",
        "host",
        "port",
        "rack",
        "is_fenced",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("broker_id", "int32"),
        FieldSpec("host", "string"),
        FieldSpec("port", "int32"),
        FieldSpec("rack", "string", first_nullable_version=0),
        FieldSpec("is_fenced", "bool", first_version=2),
    )

    def __init__(
        self, *, broker_id: int = 0, host: str = "", port: int = 0, rack: str | None = None, is_fenced: bool = False
    ) -> None:
        self.broker_id: int = broker_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack
        self.is_fenced: bool = is_fenced


class DescribeClusterResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "endpoint_type",
        "cluster_id",
        "controller_id",
        "brokers",
        "cluster_authorized_operations",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("endpoint_type", "int8", first_version=1),
        FieldSpec("cluster_id", "string"),
        FieldSpec("controller_id", "int32"),
        FieldSpec("brokers", "struct", is_array=True, item=DescribeClusterBroker),
        FieldSpec("cluster_authorized_operations", "int32"),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: Sequence[DescribeClusterBroker] = (),
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.endpoint_type: int = endpoint_type
        self.cluster_id: str = cluster_id
        self.controller_id: int = controller_id
        self.brokers: Sequence[DescribeClusterBroker] = brokers
        self.cluster_authorized_operations: int = cluster_authorized_operations
