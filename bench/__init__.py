"""Measures barnabas and Apache Kafka in the same run, with the same client; `python -m bench`."""
