"""The loops over bytes that tables need, compiled by numba, in the manner of `protocol/records/kernels.py`."""
