"""The answers to a client with few rights: each API asked with each right, by Kafka and by us, compared answer by answer."""
