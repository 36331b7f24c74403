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
        ("client_software_name", "string", False, 3, 32767, 32767, 32767, None, None),
        ("client_software_version", "string", False, 3, 32767, 32767, 32767, None, None),
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
        ("api_key", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("min_version", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("max_version", "int16", False, 0, 32767, 32767, 32767, None, None),
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
        ("name", "string", False, 3, 32767, 32767, 32767, None, None),
        ("min_version", "int16", False, 3, 32767, 32767, 32767, None, None),
        ("max_version", "int16", False, 3, 32767, 32767, 32767, None, None),
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
        ("name", "string", False, 3, 32767, 32767, 32767, None, None),
        ("max_version_level", "int16", False, 3, 32767, 32767, 32767, None, None),
        ("min_version_level", "int16", False, 3, 32767, 32767, 32767, None, None),
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
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("api_keys", "struct", True, 0, 32767, 32767, 32767, None, ApiVersion),
        ("throttle_time_ms", "int32", False, 1, 32767, 32767, 32767, None, None),
        ("supported_features", "struct", True, 3, 32767, 32767, 32767, 0, SupportedFeatureKey),
        ("finalized_features_epoch", "int64", False, 3, 32767, 32767, 32767, 1, None),
        ("finalized_features", "struct", True, 3, 32767, 32767, 32767, 2, FinalizedFeatureKey),
        ("zk_migration_ready", "bool", False, 3, 32767, 32767, 32767, 3, None),
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
