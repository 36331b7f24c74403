"""Transactions in the simulator: clients that write and read in transactions, faults that delay their requests, and the checker.

`ledger.py` and `verdict.py` are the checker, which is independent of the code under test. `producer.py`, `workers.py` and
`reader.py` are the clients, and `late_requests.py` delays or repeats their requests. `single.py` and `replicated.py` are the
runs.
"""
