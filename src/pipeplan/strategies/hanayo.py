"""Hanayo: wave pipelines."""

from __future__ import annotations

import numpy as np

from pipeplan.model import Columns, Ints, Kind, Placement, Schedule, alternate, concatenate, ops
from pipeplan.strategies.protocol import Formula, Shape, Strategy, require


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

    Raises
    ------
    ShapeError
        For an odd number of chunks, or a group size less than p (m where m < p) or more than m.
    """
    require(
        shape.chunks % 2 == 0,
        "hanayo",
        f"needs two chunks a rank for each wave, not {shape.chunks} in all",
        field="chunks",
    )
    sizes = _group_sizes(shape)
    waves = shape.chunks // 2
    rows = [_row(rank, shape.ranks, waves, sizes) for rank in range(shape.ranks)]
    kept = [row[row.microbatch < shape.microbatches] for row in rows]
    return Schedule.from_rows(Placement.wave(shape.ranks, shape.chunks), shape.microbatches, kept)


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


def _row(rank: int, ranks: int, waves: int, sizes: list[int]) -> Columns:
    """One rank's row: three phrases of warm-up, and F and B in turn; more than the microbatches asked for.

    A group of p more than asked for keeps every phrase going until the last op that counts.
    """
    wave, microbatch = _trips(waves, [*sizes, ranks])
    forth, back = 2 * ranks * wave, 2 * ranks * (waves - 1 - wave)
    turned = 2 * ranks - 1 - rank
    f_down, f_up = ops(Kind.F, forth + rank, microbatch), ops(Kind.F, forth + turned, microbatch)
    b_up, b_down = ops(Kind.B, back + turned, microbatch), ops(Kind.B, back + rank, microbatch)

    size, behind = sizes[0], ranks - rank
    # What the rank waits for the first F on the way up it spends on the first of the microbatches beyond p; some of them may
    # be the next group's, and go ahead of this one's second wave.
    early = min(behind - 1, sum(sizes) - ranks)
    ahead = np.arange(waves * size, waves * size + max(early - (size - ranks), 0))
    f_down = f_down[np.insert(np.delete(np.arange(len(f_down)), ahead), size, ahead)]

    first, started = behind + early, (waves - 1) * size + ranks
    return concatenate(
        f_down[:first],
        alternate(f_up[: started - behind], f_down[first : started + early]),
        alternate(f_up[started - behind : started], b_up[:behind]),
        alternate(f_down[started + early :], b_down, f_up[started:], b_up[behind:]),
    )


def _trips(waves: int, sizes: list[int]) -> tuple[Ints, Ints]:
    """Wave and microbatch of each trip in the order in which forwards go out: by groups, in a group by waves."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    wave, microbatch = np.divmod(np.arange(waves * len(group)), len(group))
    order = np.lexsort((microbatch, wave, group[microbatch]))
    return wave[order], microbatch[order]


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
    accepts="any p and m, chunks even (two a wave); group size p to m (m where m < p)",
    bubble=Formula(
        "(p-1)max(F,B)/w, w = v/2 waves; m < p: (p-m)(F+B) + (m-1)max(F,B)/w; last group of k < p: "
        "(1-1/w)(p-k)max(F,B) more",
        _bubble,
    ),
    memory=Formula("min(m, p/w + (1-1/w)g), groups of g = ceil(m/(m//p)) unless given", _memory),
    paper="Liu et al., Hanayo, SC 2023, arXiv 2308.15762",
    build=build_hanayo,
    chunks=2,
    fixed_chunks=False,
    grouped=True,
)

FAMILY = (hanayo,)
