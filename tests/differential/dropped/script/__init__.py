"""The behaviour that only versions dropped by Kafka 4 have, one module for each family of APIs."""
