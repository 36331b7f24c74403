"""The leader of the workers: makes jobs of what the topics say, and writes the statuses."""
