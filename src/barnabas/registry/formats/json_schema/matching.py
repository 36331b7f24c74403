"""The maximum matching: the largest set of pairs of a row and a column in which each row and each column occurs at most once."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


def maximum_matching(columns_of_row: Sequence[Sequence[int]], columns: int) -> dict[int, int]:
    """The column of each paired row.

    For each row it searches a path that alternates between free and used pairs (Kuhn's algorithm). The time is at most rows
    times pairs.
    """
    row_of_column: list[int | None] = [None] * columns
    for start in range(len(columns_of_row)):
        _augment(start, columns_of_row, row_of_column)
    return dict(sorted((row, column) for column, row in enumerate(row_of_column) if row is not None))


def _augment(start: int, columns_of_row: Sequence[Sequence[int]], row_of_column: list[int | None]) -> None:
    came_from: dict[int, int] = {}  # column -> the row from which the search reached it
    column_of: dict[int, int] = {}  # row on the path -> the column that it holds
    waiting = deque([start])
    while waiting:
        row = waiting.popleft()
        for column in columns_of_row[row]:
            if column in came_from:
                continue
            came_from[column] = row
            holder = row_of_column[column]
            if holder is not None:
                column_of[holder] = column
                waiting.append(holder)
                continue
            while True:  # the column is free: each row on the path takes the column that the search reached from it
                row = came_from[column]
                row_of_column[column] = row
                if row == start:
                    return
                column = column_of[row]
