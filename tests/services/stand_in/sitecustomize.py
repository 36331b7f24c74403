"""Puts the small service of the tests in the place of the registry, in child processes that have this folder on PYTHONPATH."""

import sys
from types import ModuleType
from typing import Any


def _make(context: Any) -> Any:
    from tests.services.trivial import Trivial

    return Trivial(context)


_module = ModuleType("barnabas.registry.service")
_module.__dict__["RegistryService"] = _make
sys.modules["barnabas.registry.service"] = _module
