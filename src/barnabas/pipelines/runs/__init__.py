"""Pipelines as `barnabas pipeline` runs them: a project, a process for each run, a folder that says how it goes. Beside the data source."""
