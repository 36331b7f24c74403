"""The process that runs functions: `python -m barnabas.functions.worker MEMORY_BYTES`.

It reads messages from its standard input and answers on its standard output. What the code of a function prints goes to its standard
error. It ends with its input.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import sys
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa

from barnabas import limits
from barnabas.functions.body import fault, loaded
from barnabas.functions.calling import Code, call
from barnabas.functions.definition import CallFailed, Function
from barnabas.functions.frames import decoded, encoded, receive, send


class Worker:
    """The functions of this process."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Function, Code, pa.DataType]] = {}

    def answer(self, head: dict[str, Any], payload: bytes) -> tuple[dict[str, Any], Any]:
        """The answer to a message: an empty head and a result, or the error."""
        function: Function | None = None
        try:
            if "define" in head:
                function = msgspec.convert(head["define"], Function)
                kind = pa.ipc.read_schema(pa.py_buffer(payload)).field(0).type
                self._known[function.digest] = function, loaded(function), kind
                return {}, b""
            function, code, kind = self._known[head["call"]]
            batch = decoded(payload)
            columns = batch.columns[: len(function.arguments)]
            found = call(function, code, columns, batch.num_rows, kind)
            return {}, encoded(pa.record_batch([found], ["r"]))
        except CallFailed as error:
            return {"message": error.message, "detail": error.detail}, b""
        except BaseException as error:  # noqa: BLE001 - the code of a user may raise anything
            assert function is not None
            message, detail = fault(function, error)
            return {"message": f"the function {function.name} failed: {message}", "detail": detail}, b""


def _own_output() -> BinaryIO:
    """The pipe to the server; whatever else is printed goes to standard error."""
    own = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return os.fdopen(own, "wb")


def main() -> None:
    """Answer until the input ends."""
    resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]), int(sys.argv[1])))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    output, source = _own_output(), os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    worker = Worker()
    quiet = open(os.devnull, "w")  # noqa: SIM115 - it lives as long as the process
    send(output, {"ready": True})
    while (message := receive(source, limits.MAX_FUNCTION_MESSAGE_BYTES)) is not None:
        faulthandler.dump_traceback_later(limits.FUNCTION_CALL_S, exit=True, file=quiet)  # also without the interpreter's lock
        head, payload = worker.answer(*message)
        faulthandler.cancel_dump_traceback_later()
        send(output, head, payload)


if __name__ == "__main__":
    main()
