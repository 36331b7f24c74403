"""Three brokers of barnabas and three of Apache Kafka: `python -m bench.cluster`."""
