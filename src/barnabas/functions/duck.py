"""Functions in an instance of DuckDB. DuckDB calls them for some thousand rows at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter, Signature
from typing import Any

import pyarrow as pa

from barnabas import limits
from barnabas.functions.definition import CallFailed, Function
from barnabas.functions.processes import WORKERS

IN_PYTHON = r"Python exception occurred while executing the UDF: \w+: "  # DuckDB's words before those of a function
NEVER: Callable[[], bool] = lambda: False  # noqa: E731 - a constant


class Known:
    """The functions of one instance.

    Args:
        instance: a connection of it, which stays open.
        only_types: whether they are there for their types, and are never called.
    """

    def __init__(self, instance: Any, *, only_types: bool = False) -> None:
        self._instance, self._only_types = instance, only_types
        self._lock = threading.Lock()
        self._digests: set[str] = set()
        self.is_cancelled: Callable[[], bool] = NEVER
        self.note: Callable[[CallFailed], None] = lambda _: None

    @property
    def is_full(self) -> bool:
        """Whether the instance should be replaced."""
        return len(self._digests) > limits.MAX_KNOWN_FUNCTIONS

    def rest(self) -> None:
        """No statement has the instance any more."""
        self.is_cancelled, self.note = NEVER, lambda _: None

    def learn(self, functions: Iterable[Function]) -> None:
        """Make functions known."""
        with self._lock:
            for each in functions:
                if each.digest not in self._digests:
                    self._register(each)
                    self._digests.add(each.digest)

    def _register(self, function: Function) -> None:
        kinds = ["VARCHAR" if each.kind == "JSON" else each.kind for each in function.arguments]
        result, *given = [self._arrow_type(each) for each in (function.kind, *kinds)]
        self._instance.create_function(
            function.call, self._called(function, result, given), kinds or ["INTEGER"], function.kind, type="arrow",
            null_handling="special", side_effects=_may_differ(function),
        )  # fmt: skip

    def _arrow_type(self, kind: str) -> pa.DataType:
        found: pa.DataType = self._instance.sql(f"SELECT NULL::{kind}").to_arrow_table().schema.field(0).type
        return found

    def _called(self, function: Function, kind: pa.DataType, kinds: Sequence[pa.DataType]) -> Callable[..., Any]:
        """Called by DuckDB. A function without arguments gets one, whose rows count.

        Args:
            kind: of the result.
            kinds: of the arguments. Times are in UTC, whatever time zone the statement has.
        """

        def call(*columns: Any) -> Any:
            if self._only_types:
                raise CallFailed(f"the function {function.name} cannot be called here")
            given = [each if each.type == wanted else each.cast(wanted) for each, wanted in zip(columns, kinds, strict=False)]
            try:
                return WORKERS.call(function, kind, given, len(columns[0]), self.is_cancelled)
            except CallFailed as error:
                self.note(error)
                raise

        parameters = [Parameter(f"a{place}", Parameter.POSITIONAL_ONLY) for place in range(max(1, len(function.arguments)))]
        vars(call)["__signature__"] = Signature(parameters)  # DuckDB counts them
        return call


def _may_differ(function: Function) -> bool:
    """Whether two calls with the same arguments may give different results."""
    return function.volatility == "volatile" or not (function.volatility or function.arguments)
