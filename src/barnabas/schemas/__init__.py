"""For programs that use a schema registry, ours or Confluent's: its REST client, and values written and read with its schemas."""
