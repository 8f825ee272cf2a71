"""Interleaved schedules: several chunks per rank, microbatches in groups; as 1F1B, as zero bubble, and overlapped.

All three run the microbatches in groups of g. A rank's forwards run group by group, within a group chunk by chunk, and
within a chunk microbatch by microbatch; its backwards do the same with the chunks reversed. The strategies differ in the
warm-up and in the order that follows it.

They are free of deadlock if the last group has the full size g, or if its size s = m mod g and g sum to at least 2(p -
1) (interleaved 1F1B), 2p - 1 (overlapped) or p - 1 (zero bubble). With one chunk, or with s = 1 and two chunks, any
sizes are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pipeplan.model import Columns, Ints, Kind, Placement, Schedule, alternate, concatenate, ops
from pipeplan.strategies.one_f_one_b import forward_with_backward, one_forward_one_backward
from pipeplan.strategies.protocol import Formula, Shape, Strategy, require


def build_interleaved_1f1b(shape: Shape) -> Schedule:
    """1F1B in which a microbatch visits each rank v times, which divides the cost of filling and draining by v.

    Rank r runs min(2(p - 1 - r) + (v - 1)g, mv) forwards, then alternates one forward and one backward, then runs the
    remaining backwards.

    Two ranks with two chunks, four microbatches in groups of two, in units of one stage's forward::

        rank 0 | 0F0 0F1 2F0 2F1 0F2 .   2B0 --  0F3 2B1 --  2F2 0B0 --  2F3 0B1 --  .   2B2 --  .   2B3 --  0B2 --  0B3 --
        rank 1 | .   1F0 1F1 3F0 3B0 --  3F1 3B1 --  1F2 1B0 --  1F3 1B1 --  3F2 3B2 --  3F3 3B3 --  1B2 --  1B3 --  .   .

    Idle time is (p - 1)(F + B)/v; with m < p it is (p - 1 + (v - 1)(p - m))(F + B)/v, and with a last group smaller than p
    at most (4v - 1)(p - 1)/v forwards for B = 2F. The peak is min(2(p - 1) + (v - 1)g + 1, mv)/v activations.

    The two variants differ in their default group size. ``pytorch``, the default, uses g = m / max(1, m // p); if that is
    not an integer (PyTorch then raises an error), the smallest size from p on that is free of deadlock. ``megatron`` uses
    g = p and does not support a last group smaller than p, as Megatron-Core does not, because ranks would wait in it for a
    chunk to return.

    Source: Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters (2021), section 2.2.

    Raises
    ------
    ShapeError
        If the group size is out of range or deadlocks; see :mod:`pipeplan.strategies.interleaved`.
    """
    group = group_size(shape, "interleaved-1f1b")
    return _rows(
        shape,
        group,
        Kind.B,
        lambda forwards, backwards, rank: one_forward_one_backward(
            forwards, backwards, 2 * (shape.ranks - 1 - rank) + (shape.chunks - 1) * group
        ),
    )


def build_interleaved_1f1b_overlap(shape: Shape) -> Schedule:
    """Interleaved 1F1B with one more forward in the warm-up, after which forwards and backwards run as overlapped pairs.

    The extra forward makes the two ops of a pair independent, so that the computation of one hides the communication of
    the other.

    Two ranks with two chunks, two microbatches, in units of one stage's forward; a pair takes F + B::

        rank 0 | 0F0  0F1  2F0  2F1  .    .    .    2B0  --   2B1  --   0B0  --   0B1  --
        rank 1 | .    1F0  1F1  3F0  (3F1 3B0) --   3B1  --   1B0  --   1B1  --   .    .

    If a pair takes F + B, idle time is that of interleaved-1f1b, except that with a last group smaller than p it is at most
    (5v - 2)(p - 1)/v forwards. The peak is min(2(p - 1) + (v - 1)g + 2, mv)/v activations.

    Source: the public pipeline-schedule visualizer's "interleaved 1F1B with overlapped forward and backward".

    Raises
    ------
    ShapeError
        If the group size is out of range or deadlocks; see :mod:`pipeplan.strategies.interleaved`.
    """
    group = group_size(shape, "interleaved-1f1b-overlap")
    return _rows(
        shape,
        group,
        Kind.B,
        lambda forwards, backwards, rank: forward_with_backward(
            forwards, backwards, 2 * (shape.ranks - 1 - rank) + (shape.chunks - 1) * group + 1
        ),
    )


def build_interleaved_zb(shape: Shape) -> Schedule:
    """Interleaved 1F1B with split backwards; on rank r, weight backwards start r input backwards later.

    Because an input backward is shorter than a full one, the warm-up needs only min(p - 1 - r + (v - 1)g, mv) forwards, and
    the delayed weight backwards fill the cool-down. With one chunk and m >= p this is ZB-H1.

    Two ranks with two chunks, four microbatches in groups of two, in units of one stage's forward::

        rank 0 | 0F0 0F1 2F0 2F1 .   2I0 2W0 0F2 2I1 2W1 0F3 0I0 0W0 2F2 0I1 0W1 2F3 2I2 2W2 2I3 2W3 0I2 0W2 0I3 0W3
        rank 1 | .   1F0 1F1 3F0 3I0 3F1 3I1 3W0 1F2 1I0 3W1 1F3 1I1 1W0 3F2 3I2 1W1 3F3 3I3 3W2 1I2 3W3 1I3 1W2 1W3

    With F = I = W, equal groups and m >= p, idle time is (p - 1)F/v. A last group of s < p microbatches adds
    (v - 1)(max(p - 2s, 0) + max(p - 3s, 0))F/v, and m < p adds (v(p - m) + (v - 1) max(p - 2m, 0))F/v. The peak is
    min(p + (v - 1)g, mv)/v activations on every rank.

    Source: PyTorch's ScheduleInterleavedZeroBubble, after Qi et al., Zero Bubble Pipeline Parallelism (2023).

    Raises
    ------
    ShapeError
        If the group size is out of range.
    """
    group = group_size(shape, "interleaved-zb")

    def row(forwards: Columns, backwards: Columns, rank: int) -> Columns:
        warm_up = shape.ranks - 1 - rank + (shape.chunks - 1) * group
        weights = replace(backwards, kind=np.full_like(backwards.kind, Kind.W))
        return concatenate(
            forwards[:warm_up],
            alternate(forwards[warm_up : warm_up + rank], backwards[:rank]),
            alternate(forwards[warm_up + rank :], backwards[rank:], weights),
        )

    return _rows(shape, group, Kind.I, row)


def _rows(shape: Shape, group: int, backward: Kind, row: Callable[[Columns, Columns, int], Columns]) -> Schedule:
    """Return the schedule whose ranks run ``row(forwards, backwards, rank)``, both in the order of the groups."""
    p, m, v = shape.ranks, shape.microbatches, shape.chunks
    chunk, microbatch = in_groups(m, v, group)
    # These are the ops of rank 0; rank r runs the same for stages that are r larger.
    forwards, backwards = ops(Kind.F, chunk * p, microbatch), ops(backward, (v - 1 - chunk) * p, microbatch)
    rows = [
        row(replace(forwards, stage=forwards.stage + rank), replace(backwards, stage=backwards.stage + rank), rank)
        for rank in range(p)
    ]
    return Schedule.from_rows(Placement.loop(p, v), m, rows)


def _idle(shape: Shape, name: str, small_group_stalls: int) -> float:
    """Return the idle time of the strategies with full backwards.

    ``small_group_stalls`` is how often a chunk stalls, for p - 1 forwards, in a last group smaller than p.
    """
    p, m, v = shape.ranks, shape.microbatches, shape.chunks
    uneven = 0 < m % group_size(shape, name) < p
    stalls = small_group_stalls * (p - 1) if uneven else 3 * max(p - m, 0)
    return (3 * (p - 1) + (v - 1) * stalls) / v


def _idle_zb(shape: Shape) -> float:
    p, m, v = shape.ranks, shape.microbatches, shape.chunks
    if m < p:
        return (p - 1 + v * (p - m) + (v - 1) * max(p - 2 * m, 0)) / v
    last = m % group_size(shape, "interleaved-zb") or p
    return (p - 1 + (v - 1) * (max(p - 2 * last, 0) + max(p - 3 * last, 0))) / v


def _peak(shape: Shape, name: str, beyond_groups: int) -> float:
    """Return the peak activations if ``beyond_groups`` forwards and v - 1 groups are held at once."""
    held = beyond_groups + (shape.chunks - 1) * group_size(shape, name)
    return min(held, shape.microbatches * shape.chunks) / shape.chunks


_ACCEPTS = "any p, m, v; group size p to m (m if m < p)"

interleaved_1f1b = Strategy(
    name="interleaved-1f1b",
    title="1F1B over several chunks per rank, microbatches in groups",
    placement="loop",
    shapes=f"{_ACCEPTS}, with m divisible by it or m mod g >= 2(p-1) - g",
    bubble=Formula(
        "(p-1)(F+B)/v; m < p: (p-1 + (v-1)(p-m))(F+B)/v; last group < p: at most (p-1)(4v-1)F/v",
        lambda shape: _idle(shape, "interleaved-1f1b", 4),
    ),
    memory=Formula(
        "min(2(p-1) + (v-1)g + 1, mv)/v",
        lambda shape: _peak(shape, "interleaved-1f1b", 2 * (shape.ranks - 1) + 1),
    ),
    paper="Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters (2021), arXiv:2104.04473",
    build=build_interleaved_1f1b,
    requires=lambda shape: group_size(shape, "interleaved-1f1b"),
    chunks=2,
    fixed_chunks=False,
    grouped=True,
    variants=("pytorch", "megatron"),
    aliases=("Interleaved1F1B", "interleave", "interleaved"),
)

interleaved_zb = Strategy(
    name="interleaved-zb",
    title="interleaved 1F1B with weight backwards delayed to fill the cool-down",
    placement="loop",
    shapes=_ACCEPTS,
    bubble=Formula("(p-1)F/v for equal groups of at least p; more for smaller ones", _idle_zb),
    memory=Formula("min(p + (v-1)g, mv)/v", lambda shape: _peak(shape, "interleaved-zb", shape.ranks)),
    paper="PyTorch ScheduleInterleavedZeroBubble; Qi et al., Zero Bubble Pipeline Parallelism (2023), arXiv:2401.10241",
    build=build_interleaved_zb,
    requires=lambda shape: group_size(shape, "interleaved-zb"),
    chunks=2,
    fixed_chunks=False,
    grouped=True,
    aliases=("InterleavedZeroBubble",),
)

interleaved_1f1b_overlap = Strategy(
    name="interleaved-1f1b-overlap",
    title="interleaved 1F1B with each forward overlapped with a backward",
    placement="loop",
    shapes=f"{_ACCEPTS}, with m divisible by it or m mod g >= 2p-1 - g",
    bubble=Formula(
        "(p-1)(F+B)/v; m < p: (p-1 + (v-1)(p-m))(F+B)/v; last group < p: at most (p-1)(5v-2)F/v",
        lambda shape: _idle(shape, "interleaved-1f1b-overlap", 5),
    ),
    memory=Formula(
        "min(2(p-1) + (v-1)g + 2, mv)/v",
        lambda shape: _peak(shape, "interleaved-1f1b-overlap", 2 * shape.ranks),
    ),
    paper="PP-schedule-visualizer, interleaved 1F1B with overlapped forward and backward",
    build=build_interleaved_1f1b_overlap,
    requires=lambda shape: group_size(shape, "interleaved-1f1b-overlap"),
    chunks=2,
    fixed_chunks=False,
    grouped=True,
    aliases=("1f1b_interleave_overlap",),
)

FAMILY = (interleaved_1f1b, interleaved_zb, interleaved_1f1b_overlap)


LEAST_SUM: dict[str, Callable[[int], int]] = {
    "interleaved-1f1b": lambda p: 2 * (p - 1),
    "interleaved-1f1b-overlap": lambda p: 2 * p - 1,
    "interleaved-zb": lambda p: p - 1,
}
"""Minimum of g + s on p ranks, for group size g and last group s, for which a strategy is free of deadlock."""


def in_groups(microbatches: int, chunks: int, group: int) -> tuple[Ints, Ints]:
    """Return the chunk and microbatch of a rank's forwards in order, each of shape (chunks * microbatches,)."""
    chunk, microbatch = np.divmod(np.arange(chunks * microbatches), microbatches)
    order = np.lexsort((microbatch, chunk, microbatch // group))
    return chunk[order], microbatch[order]


def group_size(shape: Shape, name: str) -> int:
    """Return the requested group size, or the strategy's default.

    Raises
    ------
    ShapeError
        If the size is out of range or deadlocks, or the megatron variant does not support it.
    """
    p, m, g = shape.ranks, shape.microbatches, shape.group_size
    if g is None:
        g = min(p, m) if shape.variant == "megatron" else _pytorch_group(shape, name)
    require(
        min(p, m) <= g <= m,
        name,
        f"needs a group size of {min(p, m)} to {m} for this shape, not {g}",
        field="group_size",
    )
    left = f"{m} microbatches in groups of {g} leave a last group of {m % g}"
    require(
        _runs(shape, name, g),
        name,
        f"deadlocks: {left}, and the two sizes must sum to at least {LEAST_SUM[name](p)} with {p} ranks; "
        f"group size {_next_group(shape, name, g)} is free of deadlock",
        field="group_size",
    )
    require(
        shape.variant != "megatron" or not 0 < m % g < p,
        name,
        f"(variant megatron) needs a last group of at least {p} microbatches, one per rank, but {left}",
        field="group_size",
    )
    return g


def _pytorch_group(shape: Shape, name: str) -> int:
    """Return m / max(1, m // p), PyTorch's group size, or if that is not an integer a deadlock-free size from p on."""
    p, m = shape.ranks, shape.microbatches
    rounds = max(1, m // p)
    return m // rounds if m % rounds == 0 else _next_group(shape, name, p)


def _next_group(shape: Shape, name: str, group: int) -> int:
    """Return the smallest deadlock-free group size from ``group`` up; a single group of all microbatches always is."""
    return next(g for g in range(group, shape.microbatches + 1) if _runs(shape, name, g))


def _runs(shape: Shape, name: str, group: int) -> bool:
    """Return True if groups of this size, at least p, are free of deadlock by the rule in the module's docstring."""
    last = shape.microbatches % group
    return last * (shape.chunks - 1) < 2 or group + last >= LEAST_SUM[name](shape.ranks)
