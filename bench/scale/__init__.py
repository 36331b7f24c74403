"""Measures costs that grow with brokers, partitions and groups: the real controller on a fake store, and a model of the rest:
`python -m bench.scale`."""
