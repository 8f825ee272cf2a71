"""Schedules over slices of the sequence: Seq1F1B, and with several chunks SlimPipe, and MEPipe with full or split backwards.

With several chunks, a rank's forwards run group by group, within a group chunk by chunk, within a chunk microbatch by
microbatch, and the slices of a microbatch in order. Backwards do the same with the chunks and the slices reversed. A group
is one microbatch of k slices, or as many as it takes to have a slice for each rank.
"""

from __future__ import annotations

import numpy as np

from pipeplan.model import Kind, Placement, Schedule, ops
from pipeplan.strategies.interleaved import (
    ahead_of_groups,
    idle_of_full_backwards,
    interleaved_rows,
    with_delayed_weights,
)
from pipeplan.strategies.one_f_one_b import one_forward_one_backward
from pipeplan.strategies.protocol import Formula, Shape, Strategy

USUAL_SLICES = 4
"""Default number of slices per microbatch."""


def build_slimpipe(shape: Shape) -> Schedule:
    """Interleaved 1F1B over k equal slices of the sequence: little more than one microbatch is in flight.

    Causal attention makes later slices longer. SlimPipe exchanges attention work between ranks (queries, keys and values of
    a part of the context), so that all slices take the same time; this is what the default costs are. Without the exchange,
    slices differ (``slice_attention``).

    Two ranks with two chunks, one microbatch of two slices (``0F0.1`` is slice 1), in units of a stage's forward of a
    slice::

        rank 0 | 0F0   0F0.1 2F0   2F0.1 .     .     .     2B0.1 --    2B0   --    0B0.1 --    0B0   --
        rank 1 | .     1F0   1F0.1 3F0   3F0.1 3B0.1 --    3B0   --    1B0.1 --    1B0   --    .     .

    Rank r runs (v - 1)g + k - 1 + 2(p - 1 - r) forwards first, where g = k ceil(p/k) is the number of slices in a group; a
    last group that is too small for this deadlocks, and warm-ups are shorter then, as in interleaved-1f1b. For the paper's
    case, k a multiple of p, a group is one microbatch. Idle time is then (p - 1)(F + B)/(kv), and the peak
    1 + 2(p - 1)/(kv) activations. A last group of fewer than p slices adds at most 4(v - 1)(p - 1)F/(kv) idle time. Any
    shape is valid.

    Source: Li et al., SlimPipe: Memory-Thrifty and Efficient Pipeline Parallelism for Long-Context LLM Training (2025).
    """
    return _with_full_backwards(shape, "interleaved-1f1b")


def build_svpp(shape: Shape) -> Schedule:
    """MEPipe's order with full backwards: as SlimPipe, with a warm-up that is shorter by a slice per rank behind.

    Two ranks with two chunks, one microbatch of two slices, in units of a stage's forward of a slice::

        rank 0 | 0F0   0F0.1 2F0   2F0.1 .     .     .     2B0.1 --    2B0   --    0B0.1 --    0B0   --
        rank 1 | .     1F0   1F0.1 3F0   3F0.1 3B0.1 --    3B0   --    1B0.1 --    1B0   --    .     .

    Rank r runs (v - 1)g + k - 1 + p - 1 - r forwards first, where g = k ceil(p/k) is the number of slices in a group. If p
    divides k or k divides p, the peak is (v max(p, k) + min(p, k) - 1)/(kv) activations, and the bubble
    (p - 1)/(p - 1 + kmv) of all time. A last group of L < p slices adds at most (v - 1)(p - L)(F + B)/(kv) idle time.
    Any shape is valid.

    Source: Sun et al., MEPipe: Democratizing LLM Training with Memory-Efficient Slice-Level Pipeline Scheduling on
    Cost-Effective Accelerators (2025), sequence virtual pipeline parallelism (SVPP).
    """
    return _with_full_backwards(shape, "interleaved-zb")


def build_mepipe(shape: Shape) -> Schedule:
    """1F1B over slices and chunks with split backwards: weight gradients fill the time that ranks wait.

    Two ranks with one chunk, two microbatches of two slices, in units of a stage's forward of a slice::

        rank 0 | 0F0   0F0.1 0F1   .     0I0.1 0W0.1 0F1.1 0I0   0W0   0I1.1 0W1.1 0I1   0W1
        rank 1 | .     1F0   1F0.1 1I0.1 1F1   1I0   1W0.1 1F1.1 1I1.1 1W0   1I1   1W1.1 1W1

    Warm-up and peak are those of svpp. On rank r, weight backwards run r input backwards later, so that all ranks hold the
    same and the last weight backwards fill the cool-down. With F = I = W, idle time is (p - 1)F/(kv), a third of svpp's,
    if there are k + p - 1 slices or more and the last group has at least p of them; see the formula for others. MEPipe's
    runtime starts weight backwards, matrix product by matrix product, whenever a rank waits; here their places are fixed.

    Source: Sun et al., MEPipe: Democratizing LLM Training with Memory-Efficient Slice-Level Pipeline Scheduling on
    Cost-Effective Accelerators (2025). The delay of weight backwards is that of ZB-H1.
    """
    return interleaved_rows(
        shape,
        group_size(shape),
        Kind.I,
        lambda forwards, backwards, rank: with_delayed_weights(
            forwards, backwards, _warm_up(shape, "interleaved-zb", rank), rank
        ),
    )


def group_size(shape: Shape) -> int:
    """Return the number of slices in a group: those of the fewest microbatches that have one for each rank."""
    k = shape.slices
    return min(k * -(-shape.ranks // k), k * shape.microbatches)


def _in_slices(shape: Shape) -> Shape:
    """Return the shape whose microbatches are the slices of this one: groups of either wait for each other alike."""
    return Shape(shape.ranks, shape.microbatches * shape.slices, shape.chunks, group_size=group_size(shape))


def _warm_up(shape: Shape, unsliced: str, rank: int) -> int:
    """Return how many forwards a rank runs first: as in the interleaved schedule, and k - 1 slices."""
    group = group_size(shape)
    ahead = ahead_of_groups(_in_slices(shape), unsliced, group, rank)
    return ahead + (shape.chunks - 1) * group + shape.slices - 1


def _with_full_backwards(shape: Shape, unsliced: str) -> Schedule:
    return interleaved_rows(
        shape,
        group_size(shape),
        Kind.B,
        lambda forwards, backwards, rank: one_forward_one_backward(
            forwards, backwards, _warm_up(shape, unsliced, rank)
        ),
    )


def _peak(shape: Shape, unsliced: str) -> float:
    """Return the peak activations of rank 0, which has the longest warm-up; others have delayed weights besides, if any."""
    of_one = shape.chunks * shape.slices
    return min(_warm_up(shape, unsliced, 0) + 1, shape.microbatches * of_one) / of_one


def _last_group(shape: Shape) -> tuple[int, bool]:
    """Return the number of slices in the last group, and whether it is the only one."""
    slices, group = shape.microbatches * shape.slices, group_size(shape)
    return slices % group or group, slices == group


def _idle_svpp(shape: Shape) -> float:
    p, v, (last, _) = shape.ranks, shape.chunks, _last_group(shape)
    return 3 * (p - 1 + (v - 1) * max(p - last, 0)) / (v * shape.slices)


def _idle_mepipe(shape: Shape) -> float:
    p, v, (last, only) = shape.ranks, shape.chunks, _last_group(shape)
    if only:
        late = max(p - 1 + shape.slices - last, 0)
        stalls = max(p - last, 0) + max(p - 2 * last, 0)
    else:
        late, stalls = 0, max(p - 2 * last, 0) + max(p - 3 * last, 0)
    return (p - 1 + late + (v - 1) * stalls) / (v * shape.slices)


_ANY, _MEPIPE = "any p, m, v, k", "Sun et al., MEPipe, EuroSys 2025"
_PEAK = "min(p-1 + (v-1)g + k, kmv)/(kv), groups of g = min(k ceil(p/k), km) slices"

slimpipe = Strategy(
    name="slimpipe",
    title="interleaved 1F1B over equal slices of the sequence, to hold little more than one microbatch",
    placement="loop",
    shapes=_ANY,
    bubble=Formula(
        "(p-1)(F+B)/(kv) for k slices; last group of fewer than p slices: at most (v-1)(p-1)4F/(kv) more",
        lambda shape: idle_of_full_backwards(_in_slices(shape), "interleaved-1f1b", 4) / shape.slices,
    ),
    memory=Formula(
        "at most min(2(p-1) + (v-1)g + k, kmv)/(kv), groups of g = min(k ceil(p/k), km) slices",
        lambda shape: _peak(shape, "interleaved-1f1b"),
    ),
    paper="Li et al., SlimPipe (2025), arXiv:2504.14519",
    build=build_slimpipe,
    chunks=2,
    fixed_chunks=False,
    slices=USUAL_SLICES,
    aliases=("SlimPipe",),
)

svpp = Strategy(
    name="svpp",
    title="MEPipe's interleaved 1F1B over slices of the sequence, with full backwards",
    placement="loop",
    shapes=_ANY,
    bubble=Formula(
        "(p-1)(F+B)/(kv) for k slices; last group of L < p slices: at most (v-1)(p-L)(F+B)/(kv) more", _idle_svpp
    ),
    memory=Formula(_PEAK, lambda shape: _peak(shape, "interleaved-zb")),
    paper=_MEPIPE,
    build=build_svpp,
    chunks=2,
    fixed_chunks=False,
    slices=USUAL_SLICES,
)

mepipe = Strategy(
    name="mepipe",
    title="svpp with weight backwards delayed to fill the cool-down",
    placement="loop",
    shapes=_ANY,
    bubble=Formula(
        "(p-1 + max(p-1 + k-mk, 0))F/(kv) for k slices; last group of L < p slices: at most (v-1)(p-L)2F/(kv) more",
        _idle_mepipe,
    ),
    memory=Formula(_PEAK, lambda shape: _peak(shape, "interleaved-zb")),
    paper=_MEPIPE,
    build=build_mepipe,
    chunks=2,
    fixed_chunks=False,
    slices=USUAL_SLICES,
    aliases=("MEPipe",),
)


def build_seq1f1b(shape: Shape) -> Schedule:
    """1F1B whose unit of work is one of k slices of a microbatch's sequence; backwards take the slices in reverse.

    Causal attention needs only earlier slices, so forwards run in order and backwards in reverse. Rank r runs
    p - 1 - r + k - 1 forwards first, because the first backward is that of a microbatch's last slice.

    Two ranks, two microbatches of two slices (``0F1.1`` is slice 1 of microbatch 1), in units of half a microbatch::

        rank 0 | 0F0   0F0.1 0F1   .     .     0B0.1 --    0F1.1 0B0   --    .     0B1.1 --    0B1   --
        rank 1 | .     1F0   1F0.1 1B0.1 --    1F1   1B0   --    1F1.1 1B1.1 --    1B1   --    .     .

    Idle time is (p - 1)(F + B)/k if slices take equally long, the peak min(p + k - 1, mk)/k activations. Any shape is
    valid.

    Source: Sun et al., Seq1F1B: Efficient Sequence-Level Pipeline Parallelism (2024), section 3.
    """
    p, m, k = shape.ranks, shape.microbatches, shape.slices
    microbatch, part = np.divmod(np.arange(m * k), k)
    rows = [
        one_forward_one_backward(
            ops(Kind.F, rank, microbatch, part), ops(Kind.B, rank, microbatch, k - 1 - part), p - 1 - rank + k - 1
        )
        for rank in range(p)
    ]
    return Schedule.from_rows(Placement.linear(p), m, rows, slices=k)


seq1f1b = Strategy(
    name="seq1f1b",
    title="1F1B over slices of the sequence",
    placement="linear",
    shapes="any p, m, k",
    bubble=Formula("(p-1)(F+B)/k for k slices", lambda shape: 3 * (shape.ranks - 1) / shape.slices),
    memory=Formula(
        "min(p+k-1, mk)/k for k slices",
        lambda shape: min(shape.ranks + shape.slices - 1, shape.microbatches * shape.slices) / shape.slices,
    ),
    paper="Sun et al., Seq1F1B (2024), arXiv:2406.03488",
    build=build_seq1f1b,
    slices=2,
    aliases=("Seq1F1B",),
)

FAMILY = (seq1f1b, slimpipe, svpp, mepipe)
