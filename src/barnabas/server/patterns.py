"""Regular expressions of peers, for RE2: its time grows with the text alone, whichever expression it is (Kafka uses RE2 for Java).

The library is imported with the first expression: it takes tens of milliseconds to load.
"""

from __future__ import annotations

from collections.abc import Callable

import re2

from barnabas.errors import ErrorCode, KafkaError

MAX_PATTERN_LENGTH = 4096  # characters; the time to compile grows with the length
MAX_PROGRAM_BYTES = 1 << 20  # memory for one expression


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether `pattern` matches a whole text.

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
