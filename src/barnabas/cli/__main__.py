"""`python -m barnabas.cli`, if the script is not on the path."""

from __future__ import annotations

from barnabas.cli.main import main

if __name__ == "__main__":
    main()
