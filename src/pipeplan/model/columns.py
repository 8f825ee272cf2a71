"""Ops in columns, and the phrases that rows of a schedule are written in.

A strategy says ``concatenate(warm_up, alternate(forwards, backwards), cool_down)`` and so reads like the picture in its
paper, while each phrase is a handful of numpy calls over whole arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeplan.errors import ShapeError
from pipeplan.model.arrays import Bools
from pipeplan.model.op import NO_GROUP, Kind, Op

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
    """A run of ops as five arrays of one length: kind (int8), stage, microbatch (int32), slice (int16), group (int32)."""

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
        return Columns(
            kind=self.kind[where],
            stage=self.stage[where],
            microbatch=self.microbatch[where],
            slice=self.slice[where],
            group=self.group[where],
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Columns):
            return NotImplemented
        return len(self) == len(other) and all(
            bool(np.array_equal(getattr(self, name), getattr(other, name))) for name in _TYPES
        )

    __hash__ = None  # type: ignore[assignment]


def ops(kind: Kind | ArrayLike, stage: ArrayLike, microbatch: ArrayLike, slice: ArrayLike = 0) -> Columns:
    """Ops of the given kinds, stages, microbatches and slices, broadcast against each other, in no group.

    Raises
    ------
    ShapeError
        For a number that is too large for its column.
    """
    given = [np.asarray(values) for values in (kind, stage, microbatch, slice)]
    shapes = {values.shape for values in given if values.shape}
    shape = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes((1,), *shapes)
    # Numbers are checked and converted before they are broadcast: most are few then.
    columns = [_column(name, values) for name, values in zip(_TYPES, given, strict=False)]
    kinds, stages, microbatches, slices = (_spread(column, shape) for column in columns)
    return Columns(
        kind=kinds, stage=stages, microbatch=microbatches, slice=slices, group=np.full(shape, NO_GROUP, np.int32)
    )


def _spread(column: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The column in this shape; single numbers take the short way, as every row of every rank has them."""
    if column.shape == shape:
        return column
    return np.full(shape, column) if not column.shape else np.array(np.broadcast_to(column, shape))


def from_ops(values: Iterable[Op]) -> Columns:
    """The columns of single ops; their groups are kept. Raises what :func:`ops` does."""
    table = np.array([(op.kind, op.stage, op.microbatch, op.slice, op.group) for op in values], np.int64)
    return Columns(*(_column(name, column) for name, column in zip(_TYPES, table.reshape(-1, 5).T, strict=True)))


def _column(name: str, values: NDArray[np.integer]) -> NDArray[Any]:
    """Numbers in the type of their column, which must hold them: another number would be another op."""
    column = values.astype(_TYPES[name])
    if (column != values).any():
        wrong = np.atleast_1d(values)[np.flatnonzero(column != values)[0]]
        raise ShapeError(f"an op's {name} is at most {np.iinfo(_TYPES[name]).max:,}, not {wrong}")
    return column


def concatenate(*phrases: Columns) -> Columns:
    """One phrase after the other; groups of different phrases stay apart."""
    if not phrases:
        return from_ops(())
    groups: list[NDArray[np.int32]] = []
    used = 0
    for phrase in phrases:
        more = int(phrase.group.max(initial=NO_GROUP)) + 1
        numbered = np.where(phrase.group == NO_GROUP, NO_GROUP, phrase.group + used) if more and used else phrase.group
        groups.append(numbered.astype(np.int32, copy=False))
        used += more
    return Columns(
        kind=np.concatenate([phrase.kind for phrase in phrases]),
        stage=np.concatenate([phrase.stage for phrase in phrases]),
        microbatch=np.concatenate([phrase.microbatch for phrase in phrases]),
        slice=np.concatenate([phrase.slice for phrase in phrases]),
        group=np.concatenate(groups),
    )


def alternate(*phrases: Columns) -> Columns:
    """The first op of each phrase, then the second of each, and so on.

    A phrase that is shorter than the others drops out where it ends.
    """
    lengths = [len(phrase) for phrase in phrases]
    order = np.empty(sum(lengths), np.intp)
    first = 0
    for voice, length in enumerate(lengths):
        turn = np.arange(length)
        place = turn.copy()
        for other, limit in enumerate(lengths):
            if other != voice:
                place += np.minimum(turn + (other < voice), limit)
        order[place] = np.arange(first, first + length)
        first += length
    return concatenate(*phrases)[order]


def overlap(first: Columns, second: Columns) -> Columns:
    """Pairs of one op of each phrase that run overlapped: a group a pair. The phrases have one length."""
    if len(first) != len(second):
        raise ValueError(f"overlap needs two phrases of one length, not {len(first)} and {len(second)}")
    pairs = alternate(first, second)
    return replace(pairs, group=np.repeat(np.arange(len(first), dtype=np.int32), 2))
