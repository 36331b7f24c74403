"""Dead letters: the records that connectors could not take, read, sent again and deleted."""
