"""GetTelemetrySubscriptionsRequest and GetTelemetrySubscriptionsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID, FieldSpec, Message


class GetTelemetrySubscriptionsRequest(Message):
    __slots__ = ("client_instance_id",)
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (("client_instance_id", "uuid", False, 0, 32767, 32767, 32767, None, None),)

    def __init__(self, *, client_instance_id: UUID = ZERO_UUID) -> None:
        self.client_instance_id: UUID = client_instance_id


class GetTelemetrySubscriptionsResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "client_instance_id",
        "subscription_id",
        "accepted_compression_types",
        "push_interval_ms",
        "telemetry_max_bytes",
        "delta_temporality",
        "requested_metrics",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 0, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        ("throttle_time_ms", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("client_instance_id", "uuid", False, 0, 32767, 32767, 32767, None, None),
        ("subscription_id", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("accepted_compression_types", "int8", True, 0, 32767, 32767, 32767, None, None),
        ("push_interval_ms", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("telemetry_max_bytes", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("delta_temporality", "bool", False, 0, 32767, 32767, 32767, None, None),
        ("requested_metrics", "string", True, 0, 32767, 32767, 32767, None, None),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: UUID = ZERO_UUID,
        subscription_id: int = 0,
        accepted_compression_types: Sequence[int] = (),
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: Sequence[str] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.client_instance_id: UUID = client_instance_id
        self.subscription_id: int = subscription_id
        self.accepted_compression_types: Sequence[int] = accepted_compression_types
        self.push_interval_ms: int = push_interval_ms
        self.telemetry_max_bytes: int = telemetry_max_bytes
        self.delta_temporality: bool = delta_temporality
        self.requested_metrics: Sequence[str] = requested_metrics
