"""How a fetch finds what it answers: the look at the partitions, and what has to be brought to memory first."""
