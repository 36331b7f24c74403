"""Runs the tests on all cores: `make test` is `python -m tests.parallel`."""
