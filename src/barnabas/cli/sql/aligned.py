"""Rows as psql shows them: columns that are aligned, or a line for each value.

Rows come in blocks. The first block fixes the widths; a later block with a longer value makes its column wider from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from barnabas.cli.sql.reports import escaped, width

Row = Sequence[str | None]


def lines_of(cell: str) -> list[str]:
    """The lines of a value, without characters that a terminal would obey."""
    if cell.isprintable():
        return [cell]
    return ["".join(each if each.isprintable() else _shown(each) for each in line) for line in cell.split("\n")]


def _shown(character: str) -> str:
    return {"\t": "        ", "\r": "\\r"}.get(character) or escaped(character)


class Aligned:
    """Columns side by side.

    Args:
        numeric: which columns stand at the right.
        null: the text for null.
    """

    def __init__(self, names: Sequence[str], numeric: Sequence[bool], *, header: bool = True, null: str = "") -> None:
        self._names = [lines_of(name) for name in names]
        self._numeric, self._header, self._null = numeric, header, null
        self._widths = [max(map(width, name), default=0) if header else 0 for name in self._names]
        self._begun = False

    def block(self, rows: Sequence[Row]) -> str:
        """The lines of some rows, after the head if they are the first."""
        columns = self._plain(rows)
        if columns is not None:
            return self._plain_block(columns)
        cells = [[lines_of(self._null if cell is None else cell) for cell in row] for row in rows]
        for row in cells:
            for place, lines in enumerate(row):
                widest = width(lines[0]) if len(lines) == 1 else max(map(width, lines))
                if widest > self._widths[place]:
                    self._widths[place] = widest
        out = self._head()
        for row in cells:
            out += self._row(row)
        return "".join(f"{line}\n" for line in out)

    def _plain(self, rows: Sequence[Row]) -> list[Sequence[str]] | None:
        """The columns, if each character of them takes one place of a terminal."""
        if not rows or not rows[0]:
            return None
        columns: list[Sequence[str]] = []
        for column in zip(*rows, strict=True):
            texts = [self._null if each is None else each for each in column]
            joined = "".join(texts)
            if not (joined.isascii() and joined.isprintable()):
                return None
            columns.append(texts)
        return columns

    def _plain_block(self, columns: Sequence[Sequence[str]]) -> str:
        self._widths = [max(wide, *map(len, column)) for wide, column in zip(self._widths, columns, strict=True)]
        padded: list[Sequence[str]] = []
        for place, (column, wide) in enumerate(zip(columns, self._widths, strict=True)):
            if self._numeric[place]:
                padded.append([each.rjust(wide) for each in column])
            else:
                padded.append(column if place + 1 == len(columns) else [each.ljust(wide) for each in column])
        lines = [*self._head(), *(f" {' | '.join(row)}" for row in zip(*padded, strict=True))]
        return "\n".join(lines) + "\n"

    def _head(self) -> list[str]:
        """The names above the first block."""
        if self._begun or not self._header:
            return []
        self._begun = True
        out = []
        for line in zip_longest(*self._names, fillvalue=""):
            centred = []
            for name, wide in zip(line, self._widths, strict=True):
                spare = wide - width(name)
                centred.append(f" {' ' * (spare // 2)}{name}{' ' * (spare - spare // 2)} ")
            out.append("|".join(centred))
        return [*out, "+".join("-" * (wide + 2) for wide in self._widths)]

    def _row(self, row: Sequence[list[str]]) -> list[str]:
        out = []
        for number, line in enumerate(zip_longest(*row, fillvalue="")):
            parts = []
            for place, (cell, wide) in enumerate(zip(line, self._widths, strict=True)):
                pad = " " * (wide - width(cell))
                goes_on = number + 1 < len(row[place])
                last = place + 1 == len(row) and not goes_on
                shown = pad + cell if self._numeric[place] else cell if last else cell + pad
                parts.append(f" {shown}{'+' if goes_on else '' if last else ' '}")
            out.append("|".join(parts))
        return out or [""]


class Vertical:
    """A line for each value, and a line above each row."""

    def __init__(self, names: Sequence[str], *, header: bool = True, null: str = "") -> None:
        self._names = ["".join(lines_of(name)) for name in names]
        self._left = max(map(width, self._names), default=0)
        self._header, self._null = header, null
        self._count = self._right = 0

    def block(self, rows: Sequence[Row]) -> str:
        """The lines of some rows."""
        cells = [[lines_of(self._null if cell is None else cell) for cell in row] for row in rows]
        widths = (width(line) for row in cells for lines in row for line in lines)
        self._right = max(self._right, max(widths, default=0))
        out = []
        for row in cells:
            self._count += 1
            if self._header:
                out.append(self._title())
            elif self._count > 1:
                out.append("")
            for name, lines in zip(self._names, row, strict=True):
                pad = " " * (self._left - width(name))
                for number, line in enumerate(lines):
                    goes_on = "+" if number + 1 < len(lines) else ""
                    out.append(f"{name + pad if not number else ' ' * self._left} | {line}{goes_on}".rstrip(" "))
        return "".join(f"{line}\n" for line in out)

    def _title(self) -> str:
        label = f"-[ RECORD {self._count} ]"
        if len(label) <= self._left + 1:
            return label.ljust(self._left + 1, "-") + "+" + "-" * (self._right + 1)
        return label.ljust(self._left + self._right + 3, "-")
