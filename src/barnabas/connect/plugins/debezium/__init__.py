"""The change events of Debezium: their envelope, and the config keys that its connectors have in common."""
