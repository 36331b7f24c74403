"""One listener for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sql.postgres.running import Running, running


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found
