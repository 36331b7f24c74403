"""Writes the files that are generated from the configuration definitions: the attributes of BrokerConfig and the reference
page.

python tools/generate_config.py          writes both files
python tools/generate_config.py --check  exits 1 if a file is out of date
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from barnabas.config.reference import attributes_source, reference_page

ROOT = Path(__file__).resolve().parent.parent
FILES = {
    ROOT / "src/barnabas/config/broker_attributes.py": attributes_source,
    ROOT / "docs/reference/configuration.md": reference_page,
}


def main(arguments: list[str]) -> int:
    stale = []
    for path, render in FILES.items():
        text = render()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path)
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{'stale' if '--check' in arguments else 'written'}: {path.relative_to(ROOT)}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
