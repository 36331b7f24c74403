"""Write the reference pages from the code; `--check` writes nothing and exits 1 where a page is out of date."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from barnabas.cli.reference import reference as cli_page  # noqa: E402 - the path is set above
from barnabas.config.reference import reference_page as configuration_page  # noqa: E402
from barnabas.error_codes import ErrorCode  # noqa: E402
from barnabas.protocol.messages import APIS  # noqa: E402
from barnabas.server.dispatch import SERVED  # noqa: E402
from barnabas.server.scraping import NAMES  # noqa: E402

GENERATED = "Written from the code by `make docs`."


def metrics_page() -> str:
    rows = [f"| `{name}` | {text} |" for name, text in NAMES.items()]
    intro = "Served at `/metrics` of the address that `--metrics-listener` names, beside `/healthz` and `/readyz`."
    return "\n".join(["# Metrics", "", intro, GENERATED, "", "| name | meaning |", "|---|---|", *rows, ""])


def errors_page() -> str:
    rows = [f"| {code.value} | `{code.name}` | {'yes' if code.retriable else ''} |" for code in ErrorCode]
    intro = "The error codes of the protocol; a client may try again after a retriable one."
    return "\n".join(["# Errors", "", intro, GENERATED, "", "| code | name | retriable |", "|---|---|---|", *rows, ""])


def apis_page() -> str:
    return "\n".join(["# APIs", "", "What ApiVersions announces, and what it does not.", GENERATED, "", *_api_rows(), ""])


def _api_rows() -> Iterator[str]:
    yield from ("| key | API | versions |", "|---|---|---|")
    for key, (_, name, first, last, _) in sorted(APIS.items()):
        yield f"| {key} | {name} | {f'{first} to {last}' if key in SERVED else 'not served'} |"


PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/apis.md": apis_page,
    "docs/reference/cli.md": cli_page,
    "docs/reference/configuration.md": configuration_page,
    "docs/reference/errors.md": errors_page,
    "docs/reference/metrics.md": metrics_page,
}


def stale_pages() -> list[str]:
    """The pages that differ from what the code says."""
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
