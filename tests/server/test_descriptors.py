"""How descriptors are shared out between connections and files."""

from __future__ import annotations

import resource

import pytest

from barnabas import limits
from barnabas.server.descriptors import most_connections, most_open_segments


def granting(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (most, most))


@pytest.mark.parametrize("granted", [256, 1_024, 4_096, 20_000, 1_000_000])
def test_an_eighth_is_left_for_what_comes_and_goes(monkeypatch: pytest.MonkeyPatch, granted: int) -> None:
    granting(monkeypatch, granted)
    assert most_connections() + most_open_segments() <= granted - granted // 8
    assert min(most_connections(), most_open_segments()) >= granted // 4 or most_open_segments() == limits.MAX_OPEN_SEGMENTS


def test_twenty_thousand_are_enough_for_ten_thousand_clients_and_five_thousand_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    granting(monkeypatch, 20_000)
    assert most_connections() > 11_000
    assert most_open_segments() > 6_000


def test_without_a_limit_files_have_one_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    granting(monkeypatch, resource.RLIM_INFINITY)
    assert most_open_segments() == limits.MAX_OPEN_SEGMENTS
    assert most_connections() > 1_000_000
