"""The requests, one module for each family of APIs."""
