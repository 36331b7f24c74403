"""Functions of users in Python: their definitions, and the processes that run them. Knows neither SQL's text nor Spark."""
