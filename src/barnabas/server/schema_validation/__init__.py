"""Validation of schema ids: topics whose records must name a schema that is registered under the topic's subject."""
