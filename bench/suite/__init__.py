"""The cases of the suite, and how they are run, kept and shown."""
