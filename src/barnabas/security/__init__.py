"""Authentication and authorization without sockets, clock or storage."""
