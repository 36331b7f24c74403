"""Produce 0 to 2 and Fetch 0 to 3 beside Apache Kafka 3.9, the last that served them: what is stored and what comes out."""
