"""Hashes of an array of byte strings, compiled by numba.

The hash is FNV-1a of 64 bits, folded to 32: it needs no table, and keys are short. An index on a disk holds these values, so that
another function needs another version of the index's files.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

from barnabas.protocol.records.kernels import BYTES_IN

START, PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)
ENDS = types.Array(types.int32, 1, "C", readonly=True)
HASHES = types.Array(types.uint32, 1, "C")


@njit(types.void(BYTES_IN, ENDS, HASHES), cache=True)
def hash_strings(data, ends, hashes):
    """The hash of each string; string i lies from `ends[i]` up to `ends[i + 1]`. Shapes: ends [n + 1], hashes [n]."""
    for i in range(len(hashes)):
        value = START
        for position in range(ends[i], ends[i + 1]):
            value = (value ^ np.uint64(data[position])) * PRIME
        hashes[i] = np.uint32(value ^ (value >> np.uint64(32)))
