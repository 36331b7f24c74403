"""The cases of the suite, and the code that runs them, stores their results and shows them."""
