"""The colours of SQL while it is typed."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from barnabas.cli.sql.scanner import Kind, tokens

_WORDS = """
ADD ALL ALTER ANALYZE AND ANY AS ASC BEGIN BETWEEN BY CASE CAST COLUMN COLUMNS COMMENT COMMIT COPY CREATE CROSS CSV
CURRENT DATABASES DEFAULT DELETE DESC DESCRIBE DISTINCT DROP ELSE END EXCEPT EXISTS EXPLAIN FALSE FETCH FILTER FIRST
FOLLOWING FOR FROM FULL GROUP HAVING HEADER IF ILIKE IN INNER INSERT INTERSECT INTERVAL INTO IS JOB JOBS JOIN KEY LAST
LATERAL LEFT LIKE LIMIT MATCHED MERGE NATURAL NOT NULL NULLS OFFSET ON OR ORDER OUTER OVER PARTITION PAUSE PIVOT
PRECEDING PRIMARY QUALIFY RANGE RECURSIVE RESET RESUME RIGHT RLIKE ROLLBACK ROWS SCHEMAS SELECT SET SHOW STDIN STDOUT
STREAM STREAMS TABLE TABLES THEN TO TRUE TRUNCATE UNBOUNDED UNION UNPIVOT UPDATE USING VALUES VIEW WHEN WHERE WINDOW
WITH BIGINT BINARY BOOLEAN DATE DECIMAL DOUBLE FLOAT INT INTEGER JSON NUMERIC REAL SMALLINT STRING STRUCT TEXT TIME
TIMESTAMP TIMESTAMPTZ UUID VARCHAR
"""
KEYWORDS = tuple(_WORDS.split())
_KEYWORDS = frozenset(KEYWORDS)
_STYLES = {
    Kind.COMMENT: "class:comment", Kind.STRING: "class:string", Kind.NAME: "class:name", Kind.NUMBER: "class:number",
    Kind.VARIABLE: "class:variable", Kind.COMMAND: "class:command",
}  # fmt: skip
STYLE = Style.from_dict(
    {
        "keyword": "ansiblue bold", "string": "ansigreen", "number": "ansimagenta", "comment": "ansibrightblack italic",
        "name": "ansicyan", "variable": "ansiyellow", "command": "ansiyellow", "prompt.failed": "ansired", "prompt.open": "ansiyellow",
    }
)  # fmt: skip


class SqlLexer(Lexer):
    """Colours by the shell's own tokens, so a quote ends where the shell ends it."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines: list[StyleAndTextTuples] = [[]]
        for token in tokens(document.text):
            text = document.text[token.start : token.end]
            style = _STYLES.get(token.kind, "")
            if token.kind is Kind.WORD and text.upper() in _KEYWORDS:
                style = "class:keyword"
            first, *others = text.split("\n")
            lines[-1].append((style, first))
            lines += [[(style, each)] for each in others]
        return lambda number: lines[number] if number < len(lines) else []
