"""What tables there are: definitions and the topic that keeps them, undeclared topics, and the catalogue that tools ask."""
