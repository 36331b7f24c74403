"""Guards before handlers, for every request of a broker that has an authorizer.

`guard_table` gives the guard of each API. A guard removes the entries of a request that the client may not use, passes the rest on, and
puts both into one answer; each family of APIs has a module. Produce and Fetch have no guard: their handlers check the rights for each
topic (`producing/rights.py`, `fetching/rights.py`).
"""
