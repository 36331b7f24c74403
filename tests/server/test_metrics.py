"""The page for Prometheus has every metric that the reference names, and each counter of the broker is counted somewhere."""

from __future__ import annotations

import ast
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from barnabas.server.metrics import Metrics
from barnabas.server.scraping import LABELS, NAMES, kind_of
from tests.server.in_process import running
from tests.server.scraped import render

SOURCE = Path(__file__).resolve().parents[2] / "src/barnabas"


async def test_the_page_has_every_metric_and_no_other(tmp_path: Path) -> None:
    async with running([tmp_path]) as client:
        await client.create()
        page = render(client.broker).decode()
    helps = dict(line.removeprefix("# HELP ").split(" ", 1) for line in page.splitlines() if line.startswith("# HELP "))
    assert helps == NAMES
    families = list(text_string_to_metric_families(page))
    kinds = {family.name + ("_total" if family.type == "counter" else ""): family.type for family in families}
    assert kinds == {name: kind_of(name) for name in NAMES}
    samples = [(family, sample) for family in families for sample in family.samples]
    assert len({family.name for family, sample in samples if sample.labels}) > 4
    for family, sample in samples:
        name = family.name + ("_total" if family.type == "counter" else "")
        assert set(sample.labels) - {"le"} == set(LABELS.get(name, ())), name


def test_every_counter_is_counted() -> None:
    changed = set[str]()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case (
                    ast.AugAssign(target=ast.Attribute(attr=name)) | ast.Attribute(attr="observe", value=ast.Attribute(attr=name))
                ):
                    changed.add(name)
    # the two loop_lag fields are set, not counted
    plain = {name for name, value in vars(Metrics()).items() if not name.startswith("loop_lag")}
    assert plain - {"requests"} <= changed
