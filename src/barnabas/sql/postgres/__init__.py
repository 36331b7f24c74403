"""The Postgres wire protocol (3.0 to 3.2) in front of any `Engine`.

The rooms, from the wire inwards: `server` listens, `peer` is one socket, `channel` joins it to the thread that runs its statements,
`startup` and `authentication` come first, `connection` is the state machine of the messages (`messages` in, `answers` out), with
`portals`, `cursors`, `transaction_block` and `copying`; `types`, `text_format`, `binary_format`, `rows` and `parameters` translate between
Arrow and Postgres' formats.

Rules
  1. Everything but `server` and `peer` is free of sockets and event loops.
  2. A message is answered in the thread of its session; the event loop only cuts bytes into messages and writes.
  3. No answer is held in memory as a whole: a thread that is ahead of its client waits for it.
"""
