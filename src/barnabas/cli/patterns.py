"""Regular expressions in arguments of commands."""

from __future__ import annotations

import re
import warnings

from barnabas.cli.errors import BadInput


def parse_pattern(text: str, option: str = "") -> re.Pattern[str]:
    """Raises BadInput for what is no regular expression.

    Args:
        option: that the error names.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns about patterns that later releases may interpret differently
            return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadInput(f"{option and option + ': '}{text!r} is not a regular expression: {error}") from None
