"""For programs that use a schema registry, ours or Confluent's: its REST client, and how records name their schema."""
