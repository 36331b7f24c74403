"""The reference pages say what the code does, generated files are as generated, and links between pages lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").rglob("*.md")])
GENERATORS = ["tools/docs.py", "tools/generate_config.py", "tools/generate_messages.py"]


@pytest.mark.parametrize("generator", GENERATORS)
def test_what_is_generated_is_current(generator: str) -> None:
    done = subprocess.run([sys.executable, generator, "--check"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = [t for t in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()) if "://" not in t]
    assert [target for target in targets if not (page.parent / target).exists()] == []
