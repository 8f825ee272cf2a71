"""Edited text as a schedule: the op of each word, and flaws of words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeplan.checking import Finding
from pipeplan.formats import Rows, rows_of
from pipeplan.foundation.errors import NotationError
from pipeplan.foundation.records import Record
from pipeplan.model import Columns, Op, Placement, Schedule, counted, from_ops, infer_placement, parse_cell

MOST_FLAWS = 20
"""Maximum number of reported flaws."""

_LONGEST_WORD = 40

_LAST_SLICE = int(np.iinfo(np.int16).max)


class EditedShape(Record, frozen=True):
    """The shape of the schedule that is edited: the rank of each stage for each copy of the model, microbatches and slices.

    It distinguishes an op that is missing, or on a wrong rank, from one that does not belong to the schedule.
    """

    rank_of: tuple[tuple[int, ...], ...] = msgspec.field(name="placement")
    microbatches: int
    slices: int

    @classmethod
    def of(cls, schedule: Schedule) -> EditedShape:
        """Return the shape of a schedule."""
        return cls(schedule.placement.rank_of, schedule.microbatches, schedule.slices)

    @cached_property
    def placement(self) -> Placement:
        """Return the placement of the stages. Raises ShapeError for an impossible one."""
        return Placement.of(*self.rank_of)

    def in_words(self) -> str:
        """Return the shape in words: ``4 ranks, 8 stages (loop), 16 microbatches``."""
        slices = f", {self.slices} slices" if self.slices > 1 else ""
        placement = self.placement
        return (
            f"{counted(placement.ranks, 'rank')}, {counted(placement.stages, 'stage')} ({placement.name}), "
            f"{counted(self.microbatches, 'microbatch')}{slices}"
        )


class Place(NamedTuple):
    """A word of a text: the number of its line and its number there, from 0."""

    line: int
    word: int


class Flaw(Record, frozen=True):
    """One thing that is wrong.

    Attributes
    ----------
    rule
        As of a :class:`~pipeplan.checking.Finding`, and ``notation`` for words that are not ops.
    message
        One sentence, with its place.
    places
        The words at fault; several where ops wait for each other, none where something is missing.
    """

    rule: str
    message: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True, eq=False)
class EditText:
    """A text that was read.

    Attributes
    ----------
    rows
        Words of the text.
    ops
        The ops of each row, as columns; of a row with flaws those that could be read.
    word
        Index of the word of each op of each row.
    flaws
        All words that are not ops.
    """

    rows: Rows
    ops: Sequence[Columns]
    word: Sequence[NDArray[np.int32]]
    flaws: Sequence[Flaw] = field(default=())

    def schedule(self, shape: EditedShape, name: str) -> Schedule:
        """Return the schedule of this shape. Raises ShapeError or InvalidScheduleError if the text has another one."""
        return Schedule.from_rows(shape.placement, shape.microbatches, self.ops, slices=shape.slices, name=name)

    def out_of_shape(self, shape: EditedShape) -> Iterator[Flaw]:
        """Yield the words with numbers outside of a shape."""
        placement = shape.placement
        for row, (ops, words) in enumerate(zip(self.ops, self.word, strict=True)):
            for what, values, stop in (
                ("stage", ops.stage, placement.stages),
                ("microbatch", ops.microbatch, shape.microbatches),
                ("slice", ops.slice, shape.slices),
            ):
                for at in np.flatnonzero(values >= stop).tolist():
                    op = next(iter(ops[at : at + 1]))
                    last = f"the last one is {what} {stop - 1}" if stop > 1 else f"there is only {what} 0"
                    message = f"rank {row}, op {at} ({op}): there is no {what} {values[at]}; {last}"
                    yield Flaw("range", message, (Place(self.rows.lines[row], int(words[at])),))

    def own_shape(self) -> EditedShape:
        """Return the shape implied by its numbers. Raises InvalidScheduleError if there is none."""
        rows = [list(ops) for ops in self.ops]
        microbatches = 1 + max((int(ops.microbatch.max(initial=0)) for ops in self.ops), default=0)
        slices = 1 + max((int(ops.slice.max(initial=0)) for ops in self.ops), default=0)
        return EditedShape(infer_placement(rows, microbatches).rank_of, microbatches, slices)

    def flaws_of(self, problems: Iterable[Finding], schedule: Schedule) -> list[Flaw]:
        """Return the flaws of a check, with the words at fault."""
        return [
            Flaw(
                problem.rule,
                f"{problem.where}: {problem.message}" if problem.where else problem.message,
                tuple(
                    self.place(schedule, position)
                    for position in (problem.position, *problem.others)
                    if position is not None
                ),
            )
            for problem in problems
        ]

    def place(self, schedule: Schedule, position: int) -> Place:
        """Return the word of an op of this text's schedule."""
        rank = int(schedule.rank[position])
        at = position - int(schedule.offsets[rank])
        return Place(self.rows.lines[rank], int(self.word[rank][at]))


def read_edit(text: str, *, ranks: int | None = None) -> EditText:
    """Return the ops of a text with ``ranks`` rows (see :func:`pipeplan.formats.rows_of`); other words become flaws."""
    rows = rows_of(text, ranks=ranks)
    flaws: list[Flaw] = []
    ops: list[Columns] = []
    word: list[NDArray[np.int32]] = []
    for rank, cells in enumerate(rows.cells):
        row: list[Op] = []
        numbers: list[int] = []
        for number, cell in enumerate(cells):
            try:
                parts = parse_cell(cell)
            except NotationError as error:
                flaws.append(_unread(rank, number, cell, error, rows.lines[rank]))
                continue
            if max(op.slice for op in parts) > _LAST_SLICE:
                large = NotationError(f"'{cell}': the last slice is {_LAST_SLICE:,}")
                flaws.append(_unread(rank, number, cell, large, rows.lines[rank]))
                continue
            row += parts if len(parts) == 1 else [replace(op, group=len(row)) for op in parts]
            numbers += [number] * len(parts)
        ops.append(from_ops(row))
        word.append(np.array(numbers, np.int32))
    return EditText(rows, ops, word, flaws)


def _unread(rank: int, number: int, cell: str, error: NotationError, line: int) -> Flaw:
    message = str(error)
    if len(cell) > _LONGEST_WORD:
        message = message.replace(cell, f"{cell[:_LONGEST_WORD]}…")
    return Flaw("notation", f"rank {rank}, word {number}: {message}", (Place(line, number),))
