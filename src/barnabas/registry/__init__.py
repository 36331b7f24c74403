"""The schema registry: Confluent's REST interface over the compacted topic `_schemas`.

`formats/` parses and compares schemas, and `core/` decides the result of a request. `store/` keeps the records in the topic,
and `http/` has the interface for clients.
"""
