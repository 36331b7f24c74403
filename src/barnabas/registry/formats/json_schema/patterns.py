"""Regular expressions of schemas, with bounded time.

RE2 takes time linear in the text. RE2 has no look-around: jsonschema-rs matches such expressions with a bound on backtracking.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jsonschema_rs
import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 1024 * 1024  # bytes per compiled expression
_BACKTRACK_STEPS = 10_000
_SYNTAX = jsonschema_rs.Draft7Validator({"format": "regex"}, validate_formats=True, offline=True)


def is_valid(pattern: str) -> bool:
    """Whether `pattern` is a valid expression of ECMAScript or of RE2."""
    return bool(_SYNTAX.is_valid(pattern)) or _linear(pattern) is not None


def _linear(pattern: str) -> Callable[[str], bool] | None:
    try:
        compiled = re2.compile(pattern, options=_OPTIONS)
    except re2.error:
        return None
    return lambda name: compiled.search(name) is not None


@functools.lru_cache(maxsize=1_000)
def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that says whether a name has a match at any position; an expression that no engine accepts matches nothing."""
    linear = _linear(pattern)
    if linear is not None:
        return linear
    bounds = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACK_STEPS, size_limit=1024 * 1024)
    try:
        validator = jsonschema_rs.Draft7Validator({"pattern": pattern}, pattern_options=bounds, offline=True)
    except jsonschema_rs.ValidationError:
        return lambda name: False
    return lambda name: bool(validator.is_valid(name))
