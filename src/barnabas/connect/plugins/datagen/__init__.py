"""Makes up records, as Confluent's datagen source does."""
