"""Transactions in the simulator: clients that write and read in transactions, what delays their requests, and the checker.

`ledger.py` and `verdict.py` are the checker and know nothing of the code under test; `producer.py`, `workers.py` and `reader.py` are the
clients, `late_requests.py` is what a network does to their requests; `single.py` and `replicated.py` are the runs.
"""
