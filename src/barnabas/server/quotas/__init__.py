"""Quotas of clients held at this broker."""
