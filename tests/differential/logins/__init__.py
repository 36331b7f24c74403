"""Log-ins frame by frame at Apache Kafka and at our broker, and the answers side by side."""
