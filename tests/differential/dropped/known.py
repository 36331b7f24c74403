"""What differs from Kafka 3.9 in the versions that Kafka 4 dropped, each with its reason; `docs/compatibility.md` shows this table."""

from __future__ import annotations

from tests.differential.compare import Known

KNOWN: list[Known] = []
