"""Consume, transform and produce in transactions, with three clients, while processes of theirs and brokers are killed."""
