"""The interface between a connection and the fast paths of the APIs."""
