"""What somebody with few rights is answered: each API asked with each right, by Kafka and by us, compared answer by answer."""
