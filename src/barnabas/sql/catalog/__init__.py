"""The tables of a cluster: definitions and the topic that keeps them, undeclared topics, and the catalogue that tools ask."""
