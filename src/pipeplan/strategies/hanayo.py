"""Hanayo: wave pipelines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeplan.model import Columns, Ints, Kind, Placement, Schedule, concatenate, ops
from pipeplan.strategies.protocol import Formula, Shape, Strategy, require


def _require(shape: Shape) -> None:
    require(
        shape.chunks % 2 == 0,
        "hanayo",
        f"needs an even number of chunks per rank, two per wave, not {shape.chunks}",
        field="chunks",
    )
    _group_sizes(shape)


def build_hanayo(shape: Shape) -> Schedule:
    """Flow in both directions as in Chimera, but with one copy of the model: stages run down and up the ranks, w times.

    Every microbatch takes both directions, so all ranks hold early and late stages alike.

    Three ranks, one wave (two chunks per rank), four microbatches, F = B = 1::

        rank 0 | 0F0 0F1 0F2 0F3 .   5F0 5B0 5F1 5B1 5F2 5B2 .   0B0 5F3 5B3 0B1 .   0B2 .   0B3
        rank 1 | .   1F0 1F1 1F2 4F0 1F3 4F1 4B0 4F2 4B1 .   1B0 4F3 4B2 1B1 4B3 1B2 .   1B3 .
        rank 2 | .   .   2F0 3F0 2F1 3F1 2F2 3F2 3B0 2F3 2B0 3F3 3B1 2B1 3B2 2B2 3B3 2B3 .   .

    The paper lists the actions for p microbatches: one enters in every second slot, moves on by one stage per slot, and
    returns the same way. For more microbatches, this strategy applies the steady flow of ZBV, with full backwards, to any
    number of waves: one trip of a microbatch down and up the ranks takes the place of a microbatch in ZBV. Trips start in
    groups, wave after wave. A group has at least p microbatches, so that the first one is back when its next wave starts.
    Once backwards have begun, F and B alternate on each rank. With fewer than p microbatches, the rows are those of p
    microbatches without the missing ones.

    Groups have m / floor(m/p) microbatches, rounded up or down. Ranks then wait only where the flow starts and ends. Idle
    time is (p - 1)max(F, B)/w for any m >= p, where F and B are those of all chunks of a rank, and
    (p - m)(F + B) + (m - 1)max(F, B)/w for fewer. The peak is min(p/w + (1 - 1/w)g, m) activations with groups of g: p with
    one wave, or if p divides m. A group size of p keeps the peak at p for any m, but a last group of k < p adds
    (1 - 1/w)(p - k)max(F, B) to the idle time. Valid for any p and m with an even number of chunks.

    Source: Liu et al., Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced Large Model Training Efficiency
    (2023).
    """
    sizes = _group_sizes(shape)
    waves = shape.chunks // 2
    trips = _trips(waves, [*sizes, shape.ranks], shape.microbatches)
    rows = [_row(rank, shape.ranks, waves, sizes, trips) for rank in range(shape.ranks)]
    return Schedule.from_rows(Placement.wave(shape.ranks, shape.chunks), shape.microbatches, rows)


class _Trips(NamedTuple):
    """Trips in the order in which their forwards start: index of each among all trips, wave and microbatch."""

    place: Ints
    wave: Ints
    microbatch: Ints


class _Phrase(NamedTuple):
    """Ops in order, and the index of each in the full phrase, which includes the trips of missing microbatches."""

    ops: Columns
    place: Ints

    def part(self, start: int, stop: int | None = None) -> _Phrase:
        """Return the ops with indices from ``start`` up to ``stop``, counted from ``start``."""
        begin = int(np.searchsorted(self.place, start))
        end = len(self.place) if stop is None else int(np.searchsorted(self.place, stop))
        return _Phrase(self.ops[begin:end], self.place[begin:end] - start)


def _in_turn(*phrases: _Phrase) -> Columns:
    """Merge phrases by index; of equal indices, the op of the first phrase comes first."""
    number = np.repeat(np.arange(len(phrases)), [len(phrase.place) for phrase in phrases])
    order = np.lexsort((number, np.concatenate([phrase.place for phrase in phrases])))
    return concatenate(*(phrase.ops for phrase in phrases))[order]


def _group_sizes(shape: Shape) -> list[int]:
    """Return the microbatches in each group, the largest first.

    No group has less than p, so part of the last one may be missing.

    Raises
    ------
    ShapeError
        If the group size is out of range.
    """
    p, m, size = shape.ranks, max(shape.ranks, shape.microbatches), shape.group_size
    if size is None:
        groups = m // p
        return [m // groups + (group < m % groups) for group in range(groups)]
    least = min(p, shape.microbatches)
    require(
        least <= size <= shape.microbatches,
        "hanayo",
        f"needs a group size of {least} to {shape.microbatches} for this shape, not {size}",
        field="group_size",
    )
    size = max(size, p)
    return [min(size, max(m - first, p)) for first in range(0, m, size)]


def _row(rank: int, ranks: int, waves: int, sizes: list[int], trips: _Trips) -> Columns:
    """Return one rank's row: three phrases of warm-up, then F and B in turn.

    The phrases include one more group of p than requested, so that every phrase lasts until the last op that counts.
    """
    forth, back = 2 * ranks * trips.wave, 2 * ranks * (waves - 1 - trips.wave)
    turned = 2 * ranks - 1 - rank
    f_up = _Phrase(ops(Kind.F, forth + turned, trips.microbatch), trips.place)
    b_up = _Phrase(ops(Kind.B, back + turned, trips.microbatch), trips.place)
    b_down = _Phrase(ops(Kind.B, back + rank, trips.microbatch), trips.place)

    size, behind = sizes[0], ranks - rank
    # While the rank waits for its first F on the way up, it runs forwards of the microbatches beyond p. Some of them may
    # belong to the next group and move ahead of this group's second wave.
    early = min(behind - 1, sum(sizes) - ranks)
    places = _ahead(trips.place, size, waves * size, max(early - (size - ranks), 0))
    order = np.argsort(places)
    f_down = _Phrase(ops(Kind.F, forth + rank, trips.microbatch)[order], places[order])

    first, started = behind + early, (waves - 1) * size + ranks
    return concatenate(
        f_down.part(0, first).ops,
        _in_turn(f_up.part(0, started - behind), f_down.part(first, started + early)),
        _in_turn(f_up.part(started - behind, started), b_up.part(0, behind)),
        _in_turn(f_down.part(started + early), b_down.part(0), f_up.part(started), b_up.part(behind)),
    )


def _ahead(place: Ints, to: int, begin: int, count: int) -> Ints:
    """Return the indices after ``count`` items, from index ``begin`` on, have moved forward to index ``to``."""
    moved: Ints = np.where((begin <= place) & (place < begin + count), place - begin + to, place)
    return moved + count * ((to <= place) & (place < begin))


def _trips(waves: int, sizes: list[int], microbatches: int) -> _Trips:
    starts = np.cumsum([0, *sizes])
    microbatch = np.tile(np.arange(microbatches), waves)
    wave = np.repeat(np.arange(waves), microbatches)
    group = np.searchsorted(starts, microbatch, side="right") - 1
    place = waves * starts[group] + wave * np.array(sizes)[group] + microbatch - starts[group]
    order = np.argsort(place)
    return _Trips(place[order], wave[order], microbatch[order])


def _bubble(shape: Shape) -> float:
    p, m, waves = shape.ranks, shape.microbatches, shape.chunks / 2
    if m < p:
        return 3 * (p - m) + 2 * (m - 1) / waves
    missing = max(p - (m - 1) % shape.group_size - 1, 0) if shape.group_size else 0
    return 2 * (p - 1) / waves + 2 * (1 - 1 / waves) * missing


def _memory(shape: Shape) -> float:
    waves = shape.chunks / 2
    return min(shape.microbatches, shape.ranks / waves + (1 - 1 / waves) * max(_group_sizes(shape)))


hanayo = Strategy(
    name="hanayo",
    title="waves: the stages run down and up the ranks several times",
    placement="wave",
    shapes="any p and m, even chunks (two per wave); group size p to m (m if m < p)",
    bubble=Formula(
        "(p-1)max(F,B)/w, w = v/2 waves; m < p: (p-m)(F+B) + (m-1)max(F,B)/w; last group of k < p: "
        "(1-1/w)(p-k)max(F,B) more",
        _bubble,
    ),
    memory=Formula("min(m, p/w + (1-1/w)g), groups of g = ceil(m/(m//p)) unless given", _memory),
    paper="Liu et al., Hanayo, SC 2023, arXiv 2308.15762",
    build=build_hanayo,
    requires=_require,
    chunks=2,
    fixed_chunks=False,
    grouped=True,
)

FAMILY = (hanayo,)
