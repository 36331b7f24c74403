"""The loops over the bytes of values, compiled by numba. Importing a module of this package imports numba."""
