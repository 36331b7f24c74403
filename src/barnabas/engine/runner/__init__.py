"""The process that runs tasks of connectors, each in a process of its own."""
