"""Validation of schema ids: the records of some topics must name a schema that is registered under the topic's subject."""
