"""Names of time zones in configs."""

from __future__ import annotations

from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from barnabas.connect.config_types import invalid


class Timezone(NamedTuple):
    """Names of time zones, such as UTC or Europe/Zurich."""

    def __call__(self, name: str, value: Any) -> None:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
            raise invalid(name, value, "Invalid time zone identifier") from None

    def __str__(self) -> str:
        return "valid time zone identifier"
