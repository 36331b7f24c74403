"""A fast constructor of named tuples, for those that every request creates."""

from __future__ import annotations

new_tuple = tuple.__new__
"""Makes a named tuple of its fields in order, `new_tuple(Kind, (first, second))`, in half the time its own constructor takes; nothing fills
in defaults or counts them."""
