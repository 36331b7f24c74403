"""The same requests to Apache Kafka and to barnabas, and the answers side by side."""
