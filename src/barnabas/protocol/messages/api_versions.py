"""ApiVersionsRequest and ApiVersionsResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from barnabas.protocol.base_message import FieldSpec, Message


class ApiVersionsRequest(Message):
    __slots__ = (
        "client_software_name",
        "client_software_version",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("client_software_name", "string", first_version=3),
        FieldSpec("client_software_version", "string", first_version=3),
    )

    def __init__(self, *, client_software_name: str = "", client_software_version: str = "") -> None:
        self.client_software_name: str = client_software_name
        self.client_software_version: str = client_software_version


class ApiVersion(Message):
    __slots__ = (
        "api_key",
        "min_version",
        "max_version",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("api_key", "int16"),
        FieldSpec("min_version", "int16"),
        FieldSpec("max_version", "int16"),
    )

    def __init__(self, *, api_key: int = 0, min_version: int = 0, max_version: int = 0) -> None:
        self.api_key: int = api_key
        self.min_version: int = min_version
        self.max_version: int = max_version


class SupportedFeatureKey(Message):
    __slots__ = (
        "name",
        "min_version",
        "max_version",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 3, 4, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string", first_version=3),
        FieldSpec("min_version", "int16", first_version=3),
        FieldSpec("max_version", "int16", first_version=3),
    )

    def __init__(self, *, name: str = "", min_version: int = 0, max_version: int = 0) -> None:
        self.name: str = name
        self.min_version: int = min_version
        self.max_version: int = max_version


class FinalizedFeatureKey(Message):
    __slots__ = (
        "name",
        "max_version_level",
        "min_version_level",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 3, 4, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("name", "string", first_version=3),
        FieldSpec("max_version_level", "int16", first_version=3),
        FieldSpec("min_version_level", "int16", first_version=3),
    )

    def __init__(self, *, name: str = "", max_version_level: int = 0, min_version_level: int = 0) -> None:
        self.name: str = name
        self.max_version_level: int = max_version_level
        self.min_version_level: int = min_version_level


class ApiVersionsResponse(Message):
    __slots__ = (
        "error_code",
        "api_keys",
        "throttle_time_ms",
        "supported_features",
        "finalized_features_epoch",
        "finalized_features",
        "zk_migration_ready",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 4, 3
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("error_code", "int16"),
        FieldSpec("api_keys", "struct", is_array=True, item=ApiVersion),
        FieldSpec("throttle_time_ms", "int32", first_version=1),
        FieldSpec("supported_features", "struct", is_array=True, first_version=3, tag=0, item=SupportedFeatureKey),
        FieldSpec("finalized_features_epoch", "int64", first_version=3, tag=1),
        FieldSpec("finalized_features", "struct", is_array=True, first_version=3, tag=2, item=FinalizedFeatureKey),
        FieldSpec("zk_migration_ready", "bool", first_version=3, tag=3),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: Sequence[ApiVersion] = (),
        throttle_time_ms: int = 0,
        supported_features: Sequence[SupportedFeatureKey] = (),
        finalized_features_epoch: int = -1,
        finalized_features: Sequence[FinalizedFeatureKey] = (),
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code: int = error_code
        self.api_keys: Sequence[ApiVersion] = api_keys
        self.throttle_time_ms: int = throttle_time_ms
        self.supported_features: Sequence[SupportedFeatureKey] = supported_features
        self.finalized_features_epoch: int = finalized_features_epoch
        self.finalized_features: Sequence[FinalizedFeatureKey] = finalized_features
        self.zk_migration_ready: bool = zk_migration_ready
