"""Every bound on what a peer can make grow, in one place.

Those that a user may set are configuration keys (`config.py`); these are the ones nobody needs to set.
"""

MAX_ARRAY_LENGTH = 1_000_000  # elements of one array in a request
MAX_TAGGED_FIELDS = 10_000  # tagged fields behind one struct of a request
