"""This broker among the others of its cluster: joining them, asking them, and finding out that one is gone."""
