"""The newest rows of tables with a primary key, kept in memory and followed: `rows` is the state, `reading` asks the cluster what is new,
`tables` has the tables of an engine.
"""
