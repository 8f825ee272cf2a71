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
        f"needs two chunks a rank for each wave, not {shape.chunks} in all",
        field="chunks",
    )
    _group_sizes(shape)


def build_hanayo(shape: Shape) -> Schedule:
    """Chimera's flow in both directions without its second copy: the stages run down and up the ranks, w times.

    Every microbatch takes both ways itself, so that all ranks hold early and late stages alike.

    Three ranks, one wave (two chunks a rank), four microbatches, F = B = 1::

        rank 0 | 0F0 0F1 0F2 0F3 .   5F0 5B0 5F1 5B1 5F2 5B2 .   0B0 5F3 5B3 0B1 .   0B2 .   0B3
        rank 1 | .   1F0 1F1 1F2 4F0 1F3 4F1 4B0 4F2 4B1 .   1B0 4F3 4B2 1B1 4B3 1B2 .   1B3 .
        rank 2 | .   .   2F0 3F0 2F1 3F1 2F2 3F2 3B0 2F3 2B0 3F3 3B1 2B1 3B2 2B2 3B3 2B3 .   .

    The paper lists actions for p microbatches: one enters in every second slot, moves on by one stage a slot, and comes back
    the same way. For more, the rule here carries the steady flow of ZBV, with full backwards, over to any number of waves: a
    microbatch's wave, one trip down and up, takes the place of ZBV's microbatch. Trips go out in groups, wave after wave; a
    group has at least p microbatches, so that the first is back when its next wave goes out. Once backwards have begun, F
    and B take turns on each rank. What is missing to p microbatches is left out of the rows.

    Groups have m / floor(m/p) microbatches, rounded up in some and down in others. Ranks then wait where the flow starts and
    where it ends, and nowhere between: idle time is (p - 1)max(F, B)/w for any m >= p, where F and B are those of all chunks
    of a rank, and (p - m)(F + B) + (m - 1)max(F, B)/w for fewer. The peak is p/w + (1 - 1/w)g activations in groups of g, or
    m where that is less: p with one wave, or where p divides m. A group size of p keeps it at p for any m, while a last
    group of k < p idles (1 - 1/w)(p - k)max(F, B) more. Valid for any p and m with an even number of chunks.

    Source: Liu et al., Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced Large Model Training Efficiency
    (2023).
    """
    sizes = _group_sizes(shape)
    waves = shape.chunks // 2
    trips = _trips(waves, [*sizes, shape.ranks], shape.microbatches)
    rows = [_row(rank, shape.ranks, waves, sizes, trips) for rank in range(shape.ranks)]
    return Schedule.from_rows(Placement.wave(shape.ranks, shape.chunks), shape.microbatches, rows)


class _Trips(NamedTuple):
    """Trips in the order in which their forwards go out: the place of each among all of them, wave and microbatch."""

    place: Ints
    wave: Ints
    microbatch: Ints


class _Voice(NamedTuple):
    """Ops in order, and the place of each among those that there would be with the trips that are left out."""

    ops: Columns
    place: Ints

    def part(self, start: int, stop: int | None = None) -> _Voice:
        """Those at these places, which count from the first of them."""
        begin = int(np.searchsorted(self.place, start))
        end = len(self.place) if stop is None else int(np.searchsorted(self.place, stop))
        return _Voice(self.ops[begin:end], self.place[begin:end] - start)


def _in_turn(*voices: _Voice) -> Columns:
    """The ops by their places, and of one place the first voice's first."""
    number = np.repeat(np.arange(len(voices)), [len(voice.place) for voice in voices])
    order = np.lexsort((number, np.concatenate([voice.place for voice in voices])))
    return concatenate(*(voice.ops for voice in voices))[order]


def _group_sizes(shape: Shape) -> list[int]:
    """Microbatches in each group, the largest first; the last may have more than there are, as none has less than p.

    Raises
    ------
    ShapeError
        For a group size out of range.
    """
    p, m, size = shape.ranks, max(shape.ranks, shape.microbatches), shape.group_size
    if size is None:
        groups = m // p
        return [m // groups + (group < m % groups) for group in range(groups)]
    least = min(p, shape.microbatches)
    require(
        least <= size <= shape.microbatches,
        "hanayo",
        f"takes groups of {least} to {shape.microbatches} microbatches here, not {size}",
        field="group_size",
    )
    size = max(size, p)
    return [min(size, max(m - first, p)) for first in range(0, m, size)]


def _row(rank: int, ranks: int, waves: int, sizes: list[int], trips: _Trips) -> Columns:
    """One rank's row: three phrases of warm-up, and F and B in turn.

    Its phrases are those with a group of p more than asked for, which keeps every one going until the last op that counts.
    """
    forth, back = 2 * ranks * trips.wave, 2 * ranks * (waves - 1 - trips.wave)
    turned = 2 * ranks - 1 - rank
    f_up = _Voice(ops(Kind.F, forth + turned, trips.microbatch), trips.place)
    b_up = _Voice(ops(Kind.B, back + turned, trips.microbatch), trips.place)
    b_down = _Voice(ops(Kind.B, back + rank, trips.microbatch), trips.place)

    size, behind = sizes[0], ranks - rank
    # What the rank waits for the first F on the way up it spends on the first of the microbatches beyond p; some of them may
    # be the next group's, and go ahead of this one's second wave.
    early = min(behind - 1, sum(sizes) - ranks)
    places = _ahead(trips.place, size, waves * size, max(early - (size - ranks), 0))
    order = np.argsort(places)
    f_down = _Voice(ops(Kind.F, forth + rank, trips.microbatch)[order], places[order])

    first, started = behind + early, (waves - 1) * size + ranks
    return concatenate(
        f_down.part(0, first).ops,
        _in_turn(f_up.part(0, started - behind), f_down.part(first, started + early)),
        _in_turn(f_up.part(started - behind, started), b_up.part(0, behind)),
        _in_turn(f_down.part(started + early), b_down.part(0), f_up.part(started), b_up.part(behind)),
    )


def _ahead(place: Ints, to: int, begin: int, count: int) -> Ints:
    """Places after those from ``begin`` on, so many, have gone to the place ``to`` before them."""
    moved: Ints = np.where((begin <= place) & (place < begin + count), place - begin + to, place)
    return moved + count * ((to <= place) & (place < begin))


def _trips(waves: int, sizes: list[int], microbatches: int) -> _Trips:
    """Each trip of these microbatches, in the order in which forwards go out: by groups, in a group by waves."""
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
    shapes="any p and m, chunks even (two a wave); group size p to m (m where m < p)",
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
