"""Views that Spark keeps, measured."""
