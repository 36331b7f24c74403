"""Deciders of who somebody is and what they may do: no sockets, no clock, no storage."""
