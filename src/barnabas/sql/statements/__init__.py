"""One module a family of statements: what it needs, and what it does."""
