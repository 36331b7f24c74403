"""docs/reference/cli.md says what the commands say."""

from __future__ import annotations

from pathlib import Path

from barnabas.cli.reference import reference

PAGE = Path(__file__).parents[2] / "docs/reference/cli.md"


def test_the_reference_is_current() -> None:
    assert PAGE.read_text() == reference(), "run: python -m barnabas.cli.reference > docs/reference/cli.md"
