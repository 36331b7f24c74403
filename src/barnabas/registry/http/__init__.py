"""Confluent's REST interface of the registry as routes; each handler reads the state, or sends a command to the writer."""
