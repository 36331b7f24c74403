"""A deterministic simulation: the real server code on a virtual loop, a virtual network and a faulty disk, all driven by one seed.

`python -m barnabas.testing.simulation --help` says how to run it; docs/simulation.md lists the injected faults and the checks.
"""
