"""What holds for every test: the same examples in every run, however slow the machine is; processes that start quickly."""

import os
from pathlib import Path

from hypothesis import HealthCheck, settings

settings.register_profile(
    "barnabas", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("barnabas")

# Where the environment forbids to keep compiled modules, every broker and every command that a test starts would compile all of
# barnabas anew, which takes longer than the rest of its start.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(Path(__file__).resolve().parent.parent / ".cache" / "pycache"))
