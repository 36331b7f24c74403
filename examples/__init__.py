"""Programs to start from; `tests/pipelines/test_examples.py` runs them."""
