"""SQL over topics, measured."""
