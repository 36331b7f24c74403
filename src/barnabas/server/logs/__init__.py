"""The logs that this broker has: made, opened, flushed, moved and removed, and what is done when a disk fails."""
