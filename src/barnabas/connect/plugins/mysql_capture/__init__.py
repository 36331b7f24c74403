"""Captures the changes of a MariaDB or MySQL database: a snapshot, then the binary log."""
