"""The schema registry: Confluent's REST interface over the compacted topic `_schemas`.

`formats/` parses and compares schemas, `core/` decides what a request means, `store/` keeps the records in the topic,
and `http/` speaks to clients.
"""
