"""Checks whole numbers in texts from outside.

`str.isdigit` accepts digits that `int` does not (`²`), and `int` refuses texts of more than 4,300 digits. So neither is enough
as a check.
"""

from __future__ import annotations

INT16, INT32, INT64 = 2**15 - 1, 2**31 - 1, 2**63 - 1
MOST_DIGITS = 40  # more digits than any useful number has, with leading zeros


def is_number(text: str | bytes, most: int = INT32) -> bool:
    """Whether the text is a number of 0 to `most` in ASCII digits, without a sign."""
    return len(text) <= MOST_DIGITS and text.isascii() and text.isdigit() and int(text) <= most
