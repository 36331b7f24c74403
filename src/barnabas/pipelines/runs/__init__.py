"""Runs of `barnabas pipeline`: a project, a process for each run, and a folder with its state. Independent of the data
source."""
