"""Who may do what, asked for every request of a broker that has an authorizer.

`access_control` keeps the decider of `security/` fed and remembers decisions; `guard_table` says for each API which guard stands before its
handler; the guards, a module for each family, take out of a request what may not be done, hand the rest on, and put both into one answer.
Produce and Fetch have no guard: their handlers ask for each topic (`produce_fetch`).
"""
