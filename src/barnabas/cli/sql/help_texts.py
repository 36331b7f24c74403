r"""The texts of `\?` and `\h`."""

from __future__ import annotations

COMMANDS_TEXT = """\
Statements end with ; and may have several lines. Ctrl-C stops a statement, Ctrl-D leaves.

  \\q                     leave
  \\? \\h [STATEMENT]      this list; the forms of a statement
  \\d [TABLE]             the tables, or the columns of one
  \\dt \\dn \\l             tables, schemas, databases
  \\df                    functions of users
  \\g [FILE] \\gx [FILE]   run the statement (into a file; with a line for each value)
  \\watch [SECONDS]       run the statement again and again
  \\e                     edit the statement in your editor
  \\p \\r                  show the statement, forget it
  \\i FILE                run the statements of a file; it stops at the first error
  \\o [FILE]              results go to a file; back to the terminal
  \\copy TABLE FROM 'FILE' [OPTIONS]       write the rows of a file
  \\copy TABLE | (QUERY) TO 'FILE' [OPTIONS]
  \\x [on|off]            a line for each value
  \\t [on|off]            without names of columns and counts of rows
  \\pset format table|csv|json|jsonl|vertical
  \\pset null TEXT        the text for null
  \\timing [on|off]       the time of each statement
  \\set [NAME VALUE] \\unset NAME           :NAME, :'NAME' and :"NAME" stand for the value
  \\echo TEXT             print a text"""

LACKING = {
    "a": "\\pset format has the formats",
    "c": "start the shell again with --bootstrap-server",
    "connect": "start the shell again with --bootstrap-server",
    "conninfo": "the cluster is that of --bootstrap-server",
    "cd": "the folder is that where the shell was started",
    "da": "DuckDB's functions and Spark SQL's are there",
    "di": "topics have no indexes",
    "dv": "there are no views",
    "dm": "there are no views",
    "ds": "there are no sequences",
    "du": "`barnabas user list` shows the users",
    "dg": "`barnabas user list` shows the users",
    "dp": "`barnabas acl list` shows the rights",
    "z": "`barnabas acl list` shows the rights",
    "encoding": "texts are UTF-8",
    "ef": "there are no procedures",
    "ev": "there are no views",
    "gexec": "run the statements with \\i",
    "gset": "use \\set",
    "if": "there are no conditions in files",
    "elif": "there are no conditions in files",
    "else": "there are no conditions in files",
    "endif": "there are no conditions in files",
    "ir": "use \\i",
    "password": "`barnabas user` changes a password",
    "prompt": "use -v NAME=VALUE",
    "s": "the arrow keys and Ctrl-R find earlier statements",
    "sf": "there are no procedures",
    "sv": "SHOW CREATE TABLE shows a table",
    "w": "use \\g FILE for results",
    "!": "the shell runs no commands of the system",
    "bind": "values stand in the statement, or in variables of \\set",
    "crosstabview": "use PIVOT in a statement",
    "lo_import": "there are no large objects",
    "lo_export": "there are no large objects",
    "lo_list": "there are no large objects",
    "errverbose": "an error is shown with all that is known",
}

SYNTAX = {
    "SELECT": "[WITH name AS (query), …]\nSELECT [DISTINCT] expression [AS name], …\n"
    "FROM table [JOIN table ON condition | USING (columns)] …\n[WHERE condition] [GROUP BY …] [HAVING …]\n"
    "[UNION | INTERSECT | EXCEPT query] [ORDER BY … [NULLS FIRST | LAST]] [LIMIT n] [OFFSET n]",
    "VALUES": "VALUES (expression, …), …",
    "INSERT": "INSERT INTO table [(columns)] VALUES (…), … | query",
    "UPDATE": "UPDATE table SET column = expression, … [WHERE condition]      (tables with a primary key)",
    "DELETE": "DELETE FROM table [WHERE condition]      (tables with a primary key)",
    "MERGE": "MERGE INTO table USING source ON condition\nWHEN MATCHED THEN UPDATE SET … | DELETE\n"
    "WHEN NOT MATCHED THEN INSERT (…) VALUES (…)      (tables with a primary key)",
    "CREATE TABLE": "CREATE TABLE [IF NOT EXISTS] name (column type [NOT NULL] [DEFAULT value] [PRIMARY KEY], …)\n"
    "[WITH (topic = '…', key = '…', format = 'json')]\nCREATE TABLE name [WITH (…)] AS query",
    "ALTER TABLE": "ALTER TABLE name ADD COLUMN column type [DEFAULT value]",
    "DROP TABLE": "DROP TABLE [IF EXISTS] name",
    "TRUNCATE": "TRUNCATE TABLE name",
    "COPY": "COPY table [(columns)] FROM STDIN [options]\nCOPY table | (query) TO STDOUT [options]",
    "BEGIN": "BEGIN; statements; COMMIT | ROLLBACK      (one Kafka transaction)",
    "COMMIT": "COMMIT",
    "ROLLBACK": "ROLLBACK",
    "SET": "SET name = value | DEFAULT",
    "SHOW": "SHOW TABLES | COLUMNS FROM table | CREATE TABLE table | ALL | setting",
    "DESCRIBE": "DESCRIBE table | query",
    "EXPLAIN": "EXPLAIN [ANALYZE] query",
}


def help_of(name: str) -> str | None:
    """The forms of a statement, or the list of statements for an empty name; None for an unknown one."""
    wanted = " ".join(name.upper().rstrip(";").split())
    if not wanted:
        return "Help is there for:\n  " + "\n  ".join(SYNTAX)
    found = [f"{title}\n\n{text}" for title, text in SYNTAX.items() if title == wanted or title.startswith(wanted + " ")]
    return "\n\n".join(found) if found else None
