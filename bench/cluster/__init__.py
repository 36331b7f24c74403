"""Three brokers of ours beside three of Apache Kafka: `python -m bench.cluster`."""
