"""A lazy module is imported with its first use."""

from __future__ import annotations

import sys

import pytest

from barnabas.lazy_module import LazyModule


def test_the_first_use_imports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    lazy = LazyModule("colorsys")
    assert "colorsys" not in sys.modules
    assert lazy.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)
    assert "colorsys" in sys.modules
    with pytest.raises(AttributeError, match="nothing_of_it"):
        _ = lazy.nothing_of_it


def test_a_module_that_is_not_there_is_told() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"barnabas\.nowhere"):
        _ = LazyModule("barnabas.nowhere").name
