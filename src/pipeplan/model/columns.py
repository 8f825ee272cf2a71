"""Ops in columns, and the phrases from which strategies build rows.

A strategy writes ``concatenate(warm_up, alternate(forwards, backwards), cool_down)``, which reads like the picture in
its paper. Each phrase is a few numpy calls over whole arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeplan.foundation.errors import ShapeError
from pipeplan.model.op import NO_GROUP, Kind, Op
from pipeplan.model.values import Bools

_TYPES: dict[str, type[np.signedinteger[Any]]] = {
    "kind": np.int8,
    "stage": np.int32,
    "microbatch": np.int32,
    "slice": np.int16,
    "group": np.int32,
}

Span = slice


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Ops as five arrays of equal length: kind (int8), stage, microbatch (int32), slice (int16), group (int32).

    A constant column, such as the slices of uncut microbatches, may be a broadcast view of one number.
    """

    kind: NDArray[np.int8]
    stage: NDArray[np.int32]
    microbatch: NDArray[np.int32]
    slice: NDArray[np.int16]
    group: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.kind)

    def __iter__(self) -> Iterator[Op]:
        columns = (self.kind, self.stage, self.microbatch, self.slice, self.group)
        for kind, *rest in zip(*(column.tolist() for column in columns), strict=True):
            yield Op(Kind(kind), *rest)

    def __getitem__(self, where: Span | NDArray[np.intp] | Bools) -> Columns:
        kind = self.kind[where]
        return Columns(
            kind=kind,
            stage=self.stage[where],
            microbatch=self.microbatch[where],
            slice=_column_at(self.slice, where, len(kind)),
            group=_column_at(self.group, where, len(kind)),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Columns):
            return NotImplemented
        return len(self) == len(other) and all(
            bool(np.array_equal(getattr(self, name), getattr(other, name))) for name in _TYPES
        )

    __hash__ = None  # type: ignore[assignment]


def is_constant(column: NDArray[Any]) -> bool:
    """Return True if a column is one number broadcast, so that its first item represents all of them."""
    return column.strides == (0,) and len(column) > 0


def _column_at(column: NDArray[Any], where: Span | NDArray[np.intp] | Bools, length: int) -> NDArray[Any]:
    return _constant(column, length) if is_constant(column) else column[where]


def _constant(number: NDArray[Any], length: int) -> NDArray[Any]:
    """Return a column that repeats the first number ``length`` times without copies.

    This is much faster than ``np.broadcast_to``, and strategies call it for every row.
    """
    one = number.reshape(-1)[:1]
    constant: NDArray[Any] = np.ndarray((length,), one.dtype, one, strides=(0,))
    constant.flags.writeable = False
    return constant


def ops(kind: Kind | ArrayLike, stage: ArrayLike, microbatch: ArrayLike, slice: ArrayLike = 0) -> Columns:
    """Return ops of the given kinds, stages, microbatches and slices, broadcast against each other, in no group.

    Raises
    ------
    ShapeError
        If a number does not fit its column.
    """
    parts = list(map(np.asarray, (kind, stage, microbatch, slice)))
    shapes = set(map(np.shape, parts)) - {()}
    shape = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes((1,), *shapes)
    # Check and convert before broadcasting: most arguments are still single numbers here.
    columns = [_column(name, values) for name, values in zip(_TYPES, parts, strict=False)]
    kinds, stages, microbatches = (_broadcast(column, shape) for column in columns[:3])
    slices = _constant(columns[3], *shape) if columns[3].size == 1 else _broadcast(columns[3], shape)
    return Columns(kind=kinds, stage=stages, microbatch=microbatches, slice=slices, group=_constant(_NO_GROUP, *shape))


_NO_GROUP = np.array([NO_GROUP], np.int32)


def _broadcast(column: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the column in this shape. Single numbers take a shortcut because every row of every rank has some."""
    if column.shape == shape:
        return column
    return np.full(shape, column) if not column.shape else np.array(np.broadcast_to(column, shape))


def from_ops(values: Iterable[Op]) -> Columns:
    """Return the columns of single ops with their groups. Raises the errors of :func:`ops`."""
    table = np.array([(op.kind, op.stage, op.microbatch, op.slice, op.group) for op in values], np.int64)
    return Columns(*(_column(name, column) for name, column in zip(_TYPES, table.reshape(-1, 5).T, strict=True)))


def _column(name: str, values: NDArray[np.integer]) -> NDArray[Any]:
    """Convert numbers to the type of their column; raise ShapeError for a number that would change its value."""
    column = values.astype(_TYPES[name])
    if (column != values).any():
        wrong = np.atleast_1d(values)[np.flatnonzero(column != values)[0]]
        raise ShapeError(f"an op's {name} must be at most {np.iinfo(_TYPES[name]).max:,}, not {wrong}")
    return column


def concatenate(*phrases: Columns) -> Columns:
    """Return the phrases one after the other. Groups of different phrases stay separate."""
    if not phrases:
        return from_ops(())
    kinds, stages, microbatches, slices, groups = _by_column(phrases)
    return Columns(
        kind=np.concatenate(kinds),
        stage=np.concatenate(stages),
        microbatch=np.concatenate(microbatches),
        slice=_joined(slices),
        group=_joined(_apart(groups)),
    )


def _by_column(phrases: Iterable[Columns]) -> Iterator[tuple[NDArray[Any], ...]]:
    """Return the kinds of all phrases, then their stages, microbatches, slices and groups."""
    return zip(*map(attrgetter(*_TYPES), phrases), strict=True)


def _joined(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate columns; those that are one constant throughout stay a broadcast constant."""
    filled = [column for column in columns if len(column)]
    if filled and all(map(is_constant, filled)) and len({int(column[0]) for column in filled}) == 1:
        return _constant(filled[0], sum(map(len, filled)))
    return np.concatenate(columns)


def _apart(groups: Sequence[NDArray[np.int32]]) -> list[NDArray[np.int32]]:
    """Renumber the groups of several phrases so that no two phrases share a number."""
    numbered: list[NDArray[np.int32]] = []
    used = 0
    for group in groups:
        more = int((group[:1] if is_constant(group) else group).max(initial=NO_GROUP)) + 1
        renumbered = np.where(group == NO_GROUP, NO_GROUP, group + used).astype(np.int32) if more and used else group
        numbered.append(renumbered)
        used += more
    return numbered


def alternate(*phrases: Columns) -> Columns:
    """Return the first op of each phrase, then the second of each, and so on.

    A phrase that is shorter than the others drops out where it ends.
    """
    *columns, groups = _by_column(phrases)
    return Columns(*map(_alternated, (*columns, _apart(groups))))


def _alternated(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if all(map(is_constant, columns)):
        joined = _joined(columns)
        if is_constant(joined):
            return joined
    whole = np.empty(sum(map(len, columns)), columns[0].dtype)
    done = first = 0
    # Between the end of one column and that of the next longer one, the remaining columns take turns.
    for length in sorted(set(map(len, columns))):
        left = [column for column in columns if len(column) >= length]
        stop = first + (length - done) * len(left)
        for turn, column in enumerate(left):
            whole[first + turn : stop : len(left)] = column[done:length]
        done, first = length, stop
    return whole


def overlap(first: Columns, second: Columns) -> Columns:
    """Return pairs of ops that overlap, one of each phrase; each pair is a group.

    Raises
    ------
    ValueError
        If the phrases differ in length.
    """
    if len(first) != len(second):
        raise ValueError(f"overlap needs two phrases of equal length, not {len(first)} and {len(second)}")
    pairs = alternate(first, second)
    return replace(pairs, group=np.repeat(np.arange(len(first), dtype=np.int32), 2))
