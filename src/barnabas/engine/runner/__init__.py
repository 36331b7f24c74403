"""The process that runs tasks of connectors, each in a process of its own."""

TASK_VARIABLE = "BARNABAS_RUNNER_TASK"  # of the environment: what the process needs to begin, as JSON
