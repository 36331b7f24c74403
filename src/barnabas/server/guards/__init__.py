"""Guards before handlers, for every request of a broker that has an authorizer.

`guard_table` says for each API which guard stands before its handler; the guards, a module for each family, take out of a request what may
not be done, hand the rest on, and put both into one answer. Produce and Fetch have no guard: their handlers ask for each topic
(`producing/rights.py`, `fetching/rights.py`).
"""
