"""Functions of users in Python."""
