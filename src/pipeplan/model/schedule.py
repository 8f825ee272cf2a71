"""A schedule: a placement and the ordered ops of each rank, and what it needs of a model and a trainer. It has no times."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from pipeplan.foundation.errors import InvalidScheduleError, ShapeError
from pipeplan.model.columns import Columns, concatenate, is_constant
from pipeplan.model.op import NO_GROUP, NO_MICROBATCH, Kind, Op
from pipeplan.model.placement import Placement
from pipeplan.model.values import Bools, Ints, require_short, require_size

RENDERER = "pipeplan.drawing.static"
"""A module with ``html_of(shown) -> str`` and ``png_of(shown) -> bytes``."""


class Displayed:
    """Base of the classes that notebooks show as a picture.

    The model must not import the drawing code, so the renderer module is imported by name on first use.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        html: str = import_module(RENDERER).html_of(self)
        return html

    def _repr_png_(self) -> bytes:
        png: bytes = import_module(RENDERER).png_of(self)
        return png


@dataclass(frozen=True, eq=False)
class Schedule(Displayed):
    """The ops of every rank, in the order in which the rank runs them.

    Attributes
    ----------
    placement
        The rank of each stage.
    microbatches, slices
        Number of microbatches per step, and number of sequence slices per microbatch (1: no slicing).
    columns
        All ops, rank after rank. Read-only.
    offsets
        Shape (ranks + 1,): rank r's ops are ``columns[offsets[r]:offsets[r + 1]]``.
    name
        Display name: that of the strategy or of the file.

    Raises
    ------
    ShapeError
        If there is less than one microbatch or slice, there are too many, or rows and ranks differ in number.
    InputError
        If the name is too long.
    InvalidScheduleError
        If a stage, microbatch or slice is out of range.
    """

    placement: Placement
    microbatches: int
    columns: Columns
    offsets: Ints
    slices: int = 1
    name: str = ""

    def __post_init__(self) -> None:
        require_short(self.name, "the name of a schedule")
        require_size(stages=self.stages, microbatches=self.microbatches, slices=self.slices)
        if len(self.offsets) != self.ranks + 1 or self.offsets[-1] != len(self.columns):
            raise ShapeError(f"a schedule of {self.ranks} ranks has {self.ranks} rows, not {len(self.offsets) - 1}")
        self._check_range("stage", self.columns.stage, 0, self.stages)
        self._check_range("microbatch", self.columns.microbatch, NO_MICROBATCH, self.microbatches)
        self._check_range("slice", self.columns.slice, 0, self.slices)
        for array in (*self._arrays(), self.offsets):
            array.flags.writeable = False

    def _arrays(self) -> tuple[NDArray[np.signedinteger], ...]:
        columns = self.columns
        return columns.kind, columns.stage, columns.microbatch, columns.slice, columns.group

    def _check_range(self, what: str, values: NDArray[np.signedinteger], low: int, stop: int) -> None:
        seen = values[:1] if is_constant(values) else values
        if len(values) and (seen.min() < low or seen.max() >= stop):
            where = int(np.flatnonzero((values < low) | (values >= stop))[0])
            op = next(iter(self.columns[where : where + 1]))
            raise InvalidScheduleError(
                f"{what} {values[where]} of {op} is out of range: this schedule has {what}s 0 to {stop - 1}"
            )

    @classmethod
    def from_rows(
        cls,
        placement: Placement,
        microbatches: int,
        rows: Sequence[Columns],
        *,
        slices: int = 1,
        name: str = "",
    ) -> Schedule:
        """Return the schedule whose rank r runs ``rows[r]``. Groups of different rows stay separate."""
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return cls(placement, microbatches, columns=concatenate(*rows), offsets=offsets, slices=slices, name=name)

    @property
    def ranks(self) -> int:
        """Number of ranks, p."""
        return self.placement.ranks

    @property
    def stages(self) -> int:
        """Number of stages, S."""
        return self.placement.stages

    def __len__(self) -> int:
        """Return the number of ops."""
        return len(self.columns)

    def __getitem__(self, rank: int) -> tuple[Op, ...]:
        """Return one rank's ops in order."""
        return tuple(self.row(range(self.ranks)[rank]))

    def __iter__(self) -> Iterator[tuple[Op, ...]]:
        return (self[rank] for rank in range(self.ranks))

    def __eq__(self, other: object) -> bool:
        """Return True if both schedules run the same ops in the same order. Names are not compared."""
        if not isinstance(other, Schedule):
            return NotImplemented
        return (
            self.placement.rank_of == other.placement.rank_of
            and (self.microbatches, self.slices) == (other.microbatches, other.slices)
            and np.array_equal(self.offsets, other.offsets)
            and self._without_group_numbers() == other._without_group_numbers()
        )

    __hash__ = None  # type: ignore[assignment]

    def _without_group_numbers(self) -> Columns:
        numbered = np.where(self.columns.group == NO_GROUP, NO_GROUP, np.cumsum(~self.joined)).astype(np.int32)
        return replace(self.columns, group=numbered)

    def __repr__(self) -> str:
        name = f"{self.name}: " if self.name else ""
        return (
            f"<Schedule {name}{self.ranks} ranks, {self.stages} stages ({self.placement.name}), "
            f"{self.microbatches} microbatches, {len(self)} ops>"
        )

    def row(self, rank: int) -> Columns:
        """Return one rank's ops in order, as columns."""
        return self.columns[slice(int(self.offsets[rank]), int(self.offsets[rank + 1]))]

    @cached_property
    def rank(self) -> NDArray[np.int32]:
        """Rank that runs each op, shape (ops,)."""
        return np.repeat(np.arange(self.ranks, dtype=np.int32), np.diff(self.offsets))

    @cached_property
    def key(self) -> Ints:
        """Index of each op's (stage, microbatch, slice), from 0 to ``keys``, shape (ops,); -1 for stage-wide ops."""
        columns = self.columns
        key = columns.stage.astype(np.int64)
        key *= self.microbatches
        key += columns.microbatch
        if self.slices > 1:
            key = key * self.slices + columns.slice
        if columns.microbatch.min(initial=0) == NO_MICROBATCH:
            key[columns.microbatch == NO_MICROBATCH] = -1
        return key

    @cached_property
    def cost_index(self) -> NDArray[np.intp]:
        """Index of each op in a table of costs by kind and stage: ``kind * stages + stage``, shape (ops,)."""
        index = self.columns.kind.astype(np.intp)
        index *= self.stages
        index += self.columns.stage
        return index

    @property
    def keys(self) -> int:
        """Number of (stage, microbatch, slice) combinations."""
        return self.stages * self.microbatches * self.slices

    @cached_property
    def joined(self) -> Bools:
        """Mask of the ops that overlap with the op right before them on their rank, shape (ops,)."""
        group = self.columns.group
        joined = np.zeros(len(self), np.bool_)
        if is_constant(group) and group[0] == NO_GROUP:
            return joined
        joined[1:] = (group[1:] != NO_GROUP) & (group[1:] == group[:-1])
        starts = self.offsets[:-1]
        joined[starts[starts < len(self)]] = False
        return joined

    @cached_property
    def begins_pair(self) -> Bools:
        """Mask of the ops with which the op right behind them overlaps, shape (ops,)."""
        return np.append(self.joined[1:], False)[: len(self)]

    @property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions of the forward and the backward of each overlapped pair, two arrays of shape (pairs,)."""
        second = np.flatnonzero(self.joined)
        turned = self.columns.kind[second] == Kind.F
        return np.where(turned, second, second - 1), np.where(turned, second - 1, second)

    @cached_property
    def misplaced(self) -> NDArray[np.intp]:
        """Positions of the ops that are not on the rank of their stage and microbatch, in order."""
        columns, placement = self.columns, self.placement
        microbatch = columns.microbatch if placement.copies == 1 else np.maximum(columns.microbatch, 0)
        wrong = placement.ranks_of(columns.stage, microbatch, self.microbatches) != self.rank
        if placement.copies > 1:
            wrong &= columns.microbatch != NO_MICROBATCH
        return np.flatnonzero(wrong)

    def where(self, *kinds: Kind) -> NDArray[np.intp]:
        """Return the positions of the ops of these kinds, in order."""
        kind = self.columns.kind
        chosen = kind == kinds[0]
        for other in kinds[1:]:
            chosen |= kind == other
        return np.flatnonzero(chosen)

    def has(self, kind: Kind) -> bool:
        """Return True if any op is of this kind."""
        return kind in self.kinds

    @cached_property
    def kinds(self) -> frozenset[Kind]:
        """Kinds of op that occur."""
        counts = np.bincount(self.columns.kind, minlength=len(Kind))
        return frozenset(map(Kind, np.flatnonzero(counts).tolist()))

    def op(self, position: int) -> Op:
        """Return the op at a position in the columns."""
        return next(iter(self.columns[position : position + 1]))

    def place(self, position: int) -> str:
        """Return the location of an op for messages, e.g. ``rank 2, op 7 (2F0)``. Ops of a rank are counted from 0."""
        rank = int(self.rank[position])
        return f"rank {rank}, op {position - int(self.offsets[rank])} ({self.op(position)})"

    def keep(self, chosen: Bools) -> Schedule:
        """Return the schedule with only the selected ops, in the same order.

        ``chosen`` is a mask of shape (ops,).
        """
        counts = np.concatenate(([0], np.cumsum(chosen)))
        return replace(self, columns=self.columns[chosen], offsets=counts[self.offsets].astype(np.int64))

    def arranged(self, columns: Columns, rank: NDArray[np.integer]) -> Schedule:
        """Return a schedule of this shape with other ops, sorted by the ``rank`` that runs each of them, in any order."""
        counts = np.bincount(rank, minlength=self.ranks)
        return replace(self, columns=columns, offsets=np.concatenate(([0], np.cumsum(counts))).astype(np.int64))

    def renamed(self, name: str) -> Schedule:
        """Return the same schedule under another name."""
        return replace(self, name=name)


def order_of_losses(schedule: Schedule) -> NDArray[np.int32]:
    """Return the microbatches in the order in which the last stage runs their forwards, shape (microbatches,).

    PyTorch's runtime stores a step's losses in this order and reads the k-th as that of microbatch k. If there are two
    copies of the model, or forwards are missing, the order is that of the ops in the columns.
    """
    forwards = schedule.where(Kind.F)
    order: NDArray[np.int32] = schedule.columns.microbatch[
        forwards[schedule.columns.stage[forwards] == schedule.stages - 1]
    ]
    return order


Need: TypeAlias = Literal["slices", "copies", "recompute"]
"""``slices``: attention over earlier slices of a sequence, and the loss of each slice; ``copies``: every rank holds parts of
two copies of the model; ``recompute``: activations are recomputed before their backward."""

NEEDS: tuple[Need, ...] = get_args(Need)

NEED_WORDS: dict[Need, str] = {
    "slices": "sequence slices",
    "copies": "two copies of the model",
    "recompute": "recomputation",
}


def needs_of(schedule: Schedule) -> tuple[Need, ...]:
    """Return what a schedule needs, wherever it comes from: a strategy, a search or a file."""
    needs: dict[Need, bool] = {
        "slices": schedule.slices > 1,
        "copies": schedule.placement.copies > 1,
        "recompute": schedule.has(Kind.R),
    }
    return tuple(name for name in NEEDS if needs[name])


def needs_in_words(needs: Collection[Need]) -> str:
    """Return needs in words: ``sequence slices and recomputation``; ``nothing`` without any."""
    return " and ".join(NEED_WORDS[name] for name in NEEDS if name in needs) or "nothing"
