"""The same changes of a database through Debezium and through our captures: their records are compared field by field."""
