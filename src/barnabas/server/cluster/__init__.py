"""This broker in its cluster: joins it, sends requests to the other brokers, and detects that one is dead."""
