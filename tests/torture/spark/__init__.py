"""A Spark pipeline from topic to topic whose driver, Python workers and broker are killed: `python -m tests.torture.spark`.

Where to look
    plan      the records that go in, and what must come out, by plain Python
    driver    the pipeline, as a process
    drive     starts the driver, kills it and its workers
    rounds    the loop: load, kills, and the comparison in the end
"""
