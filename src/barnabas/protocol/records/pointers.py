"""Access to the memory of arrays in compiled kernels, without numba's overhead for each use of an array.

Passing an array to a helper changes its reference count by atomic instructions, which take longer than reading a varint; and
assigning a slice copies byte by byte. A pointer is a number, and copying is one call of C's memcpy.

These functions check nothing: the user of a pointer must check accesses against the array's length, and keep the array alive.

Importing this module imports numba.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

import barnabas.protocol.records.compiling  # noqa: F401 - it tells when the kernels compile

POINTER = types.CPointer(types.uint8)


def _pointer_to(typing_context: Any, array: Any) -> Any:
    """A pointer to the first element of a contiguous array; it can be indexed like the array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), generate


def _copy_bytes(typing_context: Any, to: Any, at: Any, source: Any, begin: Any, length: Any) -> Any:
    """`to[at : at + length] = source[begin : begin + length]` for pointers to bytes that do not overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, at, source, begin, length = arguments
        cgutils.raw_memcpy(builder, builder.gep(to, [at]), builder.gep(source, [begin]), length, itemsize=1)
        return context.get_dummy_value()

    return types.void(POINTER, types.int64, POINTER, types.int64, types.int64), generate


def pointer_at(kind: Any) -> Any:
    """A function for kernels: the pointer to values of this type at an address."""
    pointer = types.CPointer(kind)

    def at_address(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(pointer))

        return pointer(types.int64), generate

    return intrinsic(at_address)


# numba adds the context argument to each call from a kernel.
pointer_to: Any = intrinsic(_pointer_to)
copy_bytes: Any = intrinsic(_copy_bytes)
