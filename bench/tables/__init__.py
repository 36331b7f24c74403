"""Topics as tables, measured."""
