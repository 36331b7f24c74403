"""`python -m bench.steps` measures every step there is, on a broker that answers without an error."""

from __future__ import annotations

import pytest

from bench import steps


def test_every_step_of_a_produce_a_fetch_and_a_wait_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(steps, "ROUNDS", 1)
    monkeypatch.setattr(steps, "CALLS", 400)
    assert steps.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith("  ")] == ["produce", "fetch", "waiting"]
    rows = {line[:45].strip(): [float(figure) for figure in line[45:].split()] for line in lines if line.startswith("  ")}
    assert {"learnt", "in a session", "it is woken and answered"} <= rows.keys()
    assert all(len(figures) == 2 for figures in rows.values())
    assert min(figure for figures in rows.values() for figure in figures) > 0
