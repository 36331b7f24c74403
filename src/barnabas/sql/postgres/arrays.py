"""Arrow arrays from numpy's, and numpy's from Arrow's, where the kernels do not reach.

`compute` is `pyarrow.compute` without types: its stubs know no mix of scalars and arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    Array: TypeAlias = pa.Array[Any]
    Field: TypeAlias = pa.Field[Any]
else:
    Array, Field = pa.Array, pa.Field  # these classes take no parameters when the program runs
Numbers = npt.NDArray[Any]
compute: Any = pc
EMPTY: Any = pa.scalar(b"", pa.binary())
NULL: Any = pa.scalar(None, pa.binary())


def fixed_size(numbers: Numbers) -> Array:
    """One value of bytes for each number, already in the order of the wire."""
    kind: Any = pa.binary(numbers.dtype.itemsize)
    made: Any = pa.Array.from_buffers(kind, len(numbers), [None, _buffer(np.ascontiguousarray(numbers))])
    return keep(made.cast(pa.binary()))


def variable(offsets: Numbers, data: Any, kind: Any = None) -> Array:
    """Values of bytes from their offsets, int32 unless `kind` is a large one, and their bytes."""
    return keep(pa.Array.from_buffers(kind or pa.binary(), len(offsets) - 1, [None, _buffer(offsets), _buffer(data)]))


def join(*parts: Any) -> Array:
    """Values side by side; null where one is null."""
    return keep(compute.binary_join_element_wise(*parts, EMPTY))


def join_all(*parts: Any) -> Array:
    """Values side by side; a null is empty."""
    return keep(compute.binary_join_element_wise(*parts, EMPTY, null_handling="replace", null_replacement=b""))


def nulls_of(shown: Array, array: Array) -> Array:
    """`shown`, null where `array` is."""
    return shown if not array.null_count else keep(compute.if_else(array.is_valid(), shown, NULL))


def offsets_of(array: Array, kind: Any = np.int32) -> Numbers:
    """Of an array of bytes, one more than it has values."""
    buffers: Any = array.buffers()
    return np.frombuffer(buffers[1], kind)[array.offset : array.offset + len(array) + 1]


def bytes_of(array: Array) -> memoryview:
    """The bytes of all values, one after the other."""
    offsets = offsets_of(array)
    data: Any = array.buffers()[2]
    return memoryview(data if data is not None else b"")[offsets[0] : offsets[-1]]


def words_of(array: Array) -> Numbers:
    """The low 64 bits of decimals of 128 bits."""
    buffers: Any = array.buffers()
    return np.frombuffer(buffers[1], "<i8")[2 * array.offset : 2 * (array.offset + len(array)) : 2]


def numbers_of(array: Any) -> Numbers:
    """As numpy has them; 0 for null."""
    found: Numbers = (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False)
    return found


def keep(found: Any) -> Array:
    """An array whose type the stubs do not know."""
    made: Array = found
    return made


def _buffer(data: Any) -> Any:
    return pa.py_buffer(data)
