"""What connectors there are and what should become of them: decisions without I/O, over the records of Kafka Connect's topics."""
