"""The text form of an array, `{1,NULL,"a b"}`, as a list."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from barnabas.sql.interface import SqlError

_TOKEN = re.compile(r'\s*(?:([{},])|"((?:[^"\\]|\\.)*)"|((?:[^{},"\\\s]|\\.|\s+(?=[^{},"\s]))+))\s*', re.DOTALL)
_BOUNDS = re.compile(r"\s*(\[-?\d+:-?\d+\])+\s*=")
MAX_DEPTH = 6  # Postgres' limit


def split_array(shown: str, read: Callable[[str], Any]) -> list[Any]:
    """The elements of an array, each read by `read`; NULL is None. Raises SqlError 22P02."""
    if bounds := _BOUNDS.match(shown):
        shown = shown[bounds.end() :]
    stack: list[list[Any]] = []
    at, needs_value, done = 0, True, None
    while at < len(shown):
        token = _TOKEN.match(shown, at)
        if token is None or done is not None:
            raise _malformed(shown)
        at = token.end()
        mark, quoted, bare = token.groups()
        if mark == "{":
            if not needs_value or len(stack) == MAX_DEPTH:
                raise _malformed(shown)
            stack.append([])
        elif not stack or ((needs_value and mark == ",") or (not needs_value and mark is None)):
            raise _malformed(shown)
        elif mark == ",":
            needs_value = True
        elif mark == "}":
            inner = stack.pop()
            if needs_value and inner:
                raise _malformed(shown)
            needs_value = False
            if stack:
                stack[-1].append(inner)
            else:
                done = inner
        else:
            stack[-1].append(_element(quoted, bare, read))
            needs_value = False
    if done is None:
        raise _malformed(shown)
    return done


def _element(quoted: str | None, bare: str | None, read: Callable[[str], Any]) -> Any:
    if quoted is None and bare is not None and bare.upper() == "NULL":
        return None
    return read(re.sub(r"\\(.)", r"\1", quoted if quoted is not None else bare or "", flags=re.DOTALL))


def _malformed(shown: str) -> SqlError:
    return SqlError("22P02", f'malformed array literal: "{shown[:200]}"')
