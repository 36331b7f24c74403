"""Fixtures for tests of produce requests with several partitions."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.records import multi_partition_scan as walk
from barnabas.server.producing import multi_partition, request_template


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many requests were worked on together each time, with the text of `multi_partition_scan` in the place of machine code."""
    seen: list[int] = []

    class Walk:
        read_requests = staticmethod(walk.read_requests)
        check_batches = staticmethod(walk.check_batches)
        answer_spread = staticmethod(walk.answer_spread)

    monkeypatch.setattr(request_template, "compiled", Walk)
    monkeypatch.setattr(multi_partition, "multi_partition_walker", Walk)
    take = multi_partition.MultiPartitionProduce.take

    def counted(self: multi_partition.MultiPartitionProduce, *arguments: Any) -> tuple[int, int]:
        found = take(self, *arguments)
        if found[0]:
            seen.append(found[0])
        return found

    monkeypatch.setattr(multi_partition.MultiPartitionProduce, "take", counted)
    return seen
