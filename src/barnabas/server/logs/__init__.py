"""The logs of this broker: creation, opening, flushes, moves and removal, and the reaction to a failed disk."""
