"""Regular expressions from peers, by RE2: its time grows only with the text, for any expression (Kafka uses RE2 for Java).

The first expression imports the library, which takes tens of milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable

import re2

from barnabas.errors import ErrorCode, KafkaError

MAX_PATTERN_LENGTH = 4096  # characters; the time to compile grows with the length
MAX_PROGRAM_BYTES = 1 << 20  # memory for one expression


def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that tells whether `pattern` matches a whole text.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION.
    """
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"The expression has more than {MAX_PATTERN_LENGTH} characters.")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_PROGRAM_BYTES
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, reason) from error
    return lambda text: compiled.fullmatch(text) is not None
