"""Write the reference pages from the code; `--check` writes nothing and exits 1 if a page is out of date."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from barnabas.cli.reference import reference as cli_page
from barnabas.config.reference import reference_page as configuration_page
from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages import APIS
from barnabas.server.api_table import BETWEEN_BROKERS, SERVED
from barnabas.server.apis.api_versions import KAFKA_4, announced_versions
from barnabas.server.scraping import LABELS, NAMES, kind_of
from tools.connectors_reference import connectors_page
from tools.registry_reference import registry_page

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "tests/differential/golden/api_versions.json"  # the versions that Apache Kafka 4.3.0 announced
GENERATED = "Written from the code by `make docs`."


def metrics_page() -> str:
    rows = [
        f"| `{name}` | {kind_of(name)} | {', '.join(f'`{label}`' for label in LABELS.get(name, ()))} | {text} |"
        for name, text in NAMES.items()
    ]
    intro = "Served at `/metrics` of the address that `--metrics-listener` names, beside `/healthz` and `/readyz`."
    return "\n".join(
        ["# Metrics", "", intro, GENERATED, "", "| name | kind | labels | meaning |", "|---|---|---|---|", *rows, ""]
    )


def errors_page() -> str:
    rows = [f"| {code.value} | `{code.name}` | {'yes' if code.retriable else ''} |" for code in ErrorCode]
    intro = "The error codes of the protocol; a client may retry after a retriable one."
    return "\n".join(["# Errors", "", intro, GENERATED, "", "| code | name | retriable |", "|---|---|---|", *rows, ""])


def apis_page() -> str:
    intro = (
        "The versions in ApiVersions of barnabas and of Apache Kafka 4.3.0. APIs without a version are not served; "
        "clients do without them or use older APIs. *In a cluster*: between brokers only. *Also older ones*: versions of Kafka 3.9 "
        "that Kafka 4 dropped; `api.versions.oldest=kafka-4` takes them away."
    )
    return "\n".join(["# APIs", "", intro, GENERATED, "", *_api_rows(), ""])


def _api_rows() -> Iterator[str]:
    yield from ("| key | API | here | Kafka 4.3 | |", "|---|---|---|---|---|")
    of_kafka = _versions_of_kafka()
    for key, (_, name, first, last, _) in sorted(APIS.items()):
        ours, theirs = announced_versions(key) if key in SERVED else None, of_kafka.get(key)
        here = f"{first} to {last} in a cluster" if key in BETWEEN_BROKERS else _range(ours)
        yield f"| {key} | {name} | {here} | {_range(theirs)} | {_difference(key, ours, theirs)} |"


def _range(versions: tuple[int, int] | None) -> str:
    return "not announced" if versions is None else f"{versions[0]} to {versions[1]}"


def _difference(key: int, ours: tuple[int, int] | None, theirs: tuple[int, int] | None) -> str:
    if ours == theirs or key in BETWEEN_BROKERS:
        return ""
    if ours is None:
        return "not here"
    if theirs is not None and announced_versions(key, KAFKA_4) == theirs:
        return "also older ones"
    return "only here" if theirs is None else "differs"


def _versions_of_kafka() -> dict[int, tuple[int, int]]:
    answers = json.loads(RECORDED.read_text())["api-versions-valid"]
    keys = next(iter(answers.values()))["api_keys"]
    return {each["api_key"]: (each["min_version"], each["max_version"]) for each in keys}


PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/apis.md": apis_page,
    "docs/reference/cli.md": cli_page,
    "docs/reference/configuration.md": configuration_page,
    "docs/reference/connectors.md": partial(connectors_page, GENERATED),
    "docs/reference/errors.md": errors_page,
    "docs/reference/metrics.md": metrics_page,
    "docs/reference/registry-rest.md": partial(registry_page, GENERATED),
}


def stale_pages() -> list[str]:
    """The pages that differ from the code."""
    return [name for name, render in PAGES.items() if not (ROOT / name).exists() or (ROOT / name).read_text() != render()]


def main() -> int:
    stale = stale_pages()
    if "--check" not in sys.argv:
        for name in stale:
            (ROOT / name).write_text(PAGES[name]())
    for name in stale:
        print(f"{'stale' if '--check' in sys.argv else 'written'}: {name}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
