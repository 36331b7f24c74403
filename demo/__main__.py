"""`python -m demo`."""

from __future__ import annotations

from demo.cli import main

if __name__ == "__main__":
    main()
