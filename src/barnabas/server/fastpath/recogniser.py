"""The interface of a fast path: a recogniser handles requests that are similar to earlier ones of its connection, or declines them.

Each API has one general way, which decides what a request does: `apis/produce.py` and `apis/fetch.py`. A recogniser learns from requests
that this way has handled. A connection keeps a list of recognisers, at most one for each API. It starts empty: the general way adds a
recogniser when it has a request to learn from.

Rules
  1. A recogniser that declines has changed nothing. The general way then handles the same bytes.
  2. An answer of a recogniser has the same bytes as the answer of the general way.
  3. The general way decides what may be learnt: `producing/recognisable.py` and `fetching/recognisable.py` list every field of the
     request.
  4. `forget` removes all learnt requests. The connection calls it at its end; log-ins and quotas call it when the rights or limits of the
     client change.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

C_contra = TypeVar("C_contra", contravariant=True)
C = TypeVar("C")
R = TypeVar("R")


class Recogniser(Protocol[C_contra]):
    """A fast path of one API on one connection of type `C_contra`."""

    @property
    def api_key(self) -> int:
        """The API of the requests that this recogniser handles."""
        ...

    def take(self, connection: C_contra, data: memoryview, position: int, stop: int) -> tuple[int, int]:
        """Handle the request at `position`, or several requests from there on, or decline.

        Args:
            data: received bytes; they are valid until this call returns.
            position: the start of the request; its first four bytes are its size.
            stop: the end of the request; later requests may follow.

        Returns:
            The number of handled requests and the position after the last one; 0 and `position` if it declines.
        """
        ...

    def forget(self) -> None:
        """Forget all learnt requests."""
        ...


def find(recognisers: list[Recogniser[C]], kind: type[R]) -> R | None:
    """The recogniser of class `kind`, or None."""
    for each in recognisers:
        if isinstance(each, kind):
            return each
    return None


def use(recognisers: list[Recogniser[C]], recogniser: Recogniser[C]) -> None:
    """Put `recogniser` into the list; it replaces the one for the same API."""
    for index, each in enumerate(recognisers):
        if each.api_key == recogniser.api_key:
            recognisers[index] = recogniser
            return
    recognisers.append(recogniser)
