"""What the versions that Kafka 4 dropped have and no other, one module for each family of APIs."""
