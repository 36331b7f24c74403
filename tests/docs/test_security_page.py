"""The recipes of the page on security work as pasted, and the settings that it shows are settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas.client import bearer
from barnabas.config import definitions
from tests.docs.pasted import FENCE, ROOT, Pasted

PAGE = ROOT / "docs" / "security.md"
OF_CLIENTS = {"security.protocol", "sasl.mechanism", *bearer.CLIENT_ID[:2], *bearer.CLIENT_SECRET[:2]}
OF_PROVIDER = re.compile(r"config\.providers\.\w+\.(class|param\..+)")
OF_LISTENER = re.compile(r"listener\.name\.\w+\.((scram-sha-\d+|plain|oauthbearer|gssapi)\.)?")


@pytest.mark.timeout(300)
def test_its_recipes_run_as_pasted(tmp_path: Path) -> None:
    with Pasted(tmp_path) as reader:
        assert reader.run_page(PAGE) > 0, "it has something to paste"


def test_its_settings_are_known() -> None:
    blocks = [match[3] for match in FENCE.finditer(PAGE.read_text()) if match[2] == "properties"]
    names = [line.partition("=")[0] for block in blocks for line in block.splitlines()]
    assert len(names) > 10
    settings = [OF_LISTENER.sub("", name) for name in names if not OF_PROVIDER.fullmatch(name)]
    assert [name for name in settings if name not in {*definitions.BROKER, *OF_CLIENTS}] == []
