"""Views that jobs of the engine keep: their definitions, their jobs, and waiting for them."""
