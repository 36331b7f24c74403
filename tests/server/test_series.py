"""Metrics of many samples: as the library writes them, and in turns of the loop."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.server import series
from barnabas.server.scraping import pieces
from barnabas.server.series import Series, in_turns
from tests.server.in_process import running

NAMES = ['plain "quoted"', "back\\slash", "two\nlines", "äöü", ""]


def test_what_is_written_is_what_was_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "SAMPLES_PER_TURN", 2)
    lag = Series("lag", "Of all.", ("group", "topic"))
    samples = [((name, f"t{number}"), number * 10.0**number) for number, name in enumerate(NAMES)]
    for labels, value in samples:
        lag.add(labels, value)
    assert len(lag.pieces()) > 2
    (family,) = text_string_to_metric_families(b"".join(lag.pieces()).decode())
    assert (family.name, family.type, family.documentation) == ("lag", "gauge", "Of all.")
    assert [((each.labels["group"], each.labels["topic"]), each.value) for each in family.samples] == samples


def test_a_turn_ends_after_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "SAMPLES_PER_TURN", 2)
    assert list(in_turns("abcde")) == ["a", "b", None, "c", "d", None, "e"]


async def test_partitions_come_and_go_while_the_page_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series, "SAMPLES_PER_TURN", 2)
    async with running([tmp_path]) as client:
        await client.create(partitions=9)
        made: list[bytes] = []
        turns = 0
        for piece in pieces(client.broker):
            made.append(piece)
            if not piece:  # within the partitions
                turns += 1
                await client.create(name=f"at-turn-{turns}")
        assert turns > 12
        families = {family.name: family for family in text_string_to_metric_families(b"".join(made).decode())}
        sizes = {(each.labels["topic"], each.labels["partition"]) for each in families["barnabas_log_size_bytes"].samples}
        assert {("t", str(number)) for number in range(9)} < sizes
