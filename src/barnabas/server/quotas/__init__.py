"""Quotas that this broker enforces on its clients."""
