"""UpdateFeaturesRequest and UpdateFeaturesResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class FeatureUpdateKey(Message):
    __slots__ = (
        "feature",
        "max_version_level",
        "allow_downgrade",
        "upgrade_type",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("feature", "string"),
        FieldSpec("max_version_level", "int16"),
        FieldSpec("allow_downgrade", "bool", last_version=0),
        FieldSpec("upgrade_type", "int8", first_version=1),
    )

    def __init__(
        self, *, feature: str = "", max_version_level: int = 0, allow_downgrade: bool = False, upgrade_type: int = 1
    ) -> None:
        self.feature: str = feature
        self.max_version_level: int = max_version_level
        self.allow_downgrade: bool = allow_downgrade
        self.upgrade_type: int = upgrade_type


class UpdateFeaturesRequest(Message):
    __slots__ = (
        "timeout_ms",
        "feature_updates",
        "validate_only",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("timeout_ms", "int32"),
        FieldSpec("feature_updates", "struct", is_array=True, item=FeatureUpdateKey),
        FieldSpec("validate_only", "bool", first_version=1),
    )

    def __init__(
        self, *, timeout_ms: int = 60000, feature_updates: Sequence[FeatureUpdateKey] = (), validate_only: bool = False
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.feature_updates: Sequence[FeatureUpdateKey] = feature_updates
        self.validate_only: bool = validate_only


class UpdatableFeatureResult(Message):
    __slots__ = (
        "feature",
        "error_code",
        "error_message",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 1, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("feature", "string", last_version=1),
        FieldSpec("error_code", "int16", last_version=1),
        FieldSpec("error_message", "string", last_version=1, first_nullable_version=0, last_nullable_version=1),
    )

    def __init__(self, *, feature: str = "", error_code: int = 0, error_message: str | None = "") -> None:
        self.feature: str = feature
        self.error_code: int = error_code
        self.error_message: str | None = error_message


class UpdateFeaturesResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "results",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("error_message", "string", first_nullable_version=0),
        FieldSpec("results", "struct", is_array=True, last_version=1, item=UpdatableFeatureResult),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: Sequence[UpdatableFeatureResult] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.results: Sequence[UpdatableFeatureResult] = results
