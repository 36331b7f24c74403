"""The planner of views: from the tree of a query to the nodes that keep its result."""
