"""Sources of dlt as a connector."""
