"""Produce 0 to 2 and Fetch 0 to 3 beside Apache Kafka 3.9, the last that served them: byte by byte what goes in, message by message what comes
out."""
