"""The versions that Kafka 4 dropped (KIP-896), beside Apache Kafka 3.9: the script of Kafka 4 in those versions, and one of their own."""
