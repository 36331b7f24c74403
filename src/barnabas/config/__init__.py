"""Configuration keys, their types, defaults and meaning; names and defaults are Kafka's."""
