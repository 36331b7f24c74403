"""`barnabas sql`: a shell for SQL statements.

The rooms, from the text inwards: `scanner` cuts input into statements and commands, `variables` puts values into them, `shell` runs them,
`backslash` has the commands, `session_maker` makes sessions in this process, `statement_thread` lets Ctrl-C end a statement. `printers`,
`aligned` and `cells` show rows, `pager` shows long ones.
Only `prompt` and its `colours` and `suggestions` need a terminal; only they import prompt_toolkit.
"""
