"""Fixtures of the cluster's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.cluster.members import Members


@pytest.fixture
async def cluster() -> AsyncIterator[Members]:
    async with Members() as members:
        yield members
