"""Interleaved schedules: several chunks per rank, microbatches in groups; as 1F1B, as zero bubble, and overlapped.

All three run the microbatches in groups of g. A rank's forwards run group by group, within a group chunk by chunk, and
within a chunk microbatch by microbatch; its backwards do the same with the chunks reversed. The strategies differ in the
warm-up and in the order that follows it.

The usual warm-up is free of deadlock if the sizes of neighboring groups (g and g, or g and the last one, s) sum to at
least 2(p - 1) (interleaved 1F1B), 2p - 1 (overlapped) or p - 1 (zero bubble). With one chunk, or with s = 1 and two
chunks, any sizes are. Elsewhere, and in interleaved 1F1B in all groups smaller than p, the early ranks run fewer forwards
first: one instead of two per rank behind them, and at most the sum d of two neighboring groups.
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

    Groups smaller than p save memory and cost time, because ranks wait for a chunk to return. The warm-up is then
    min(p - 1 - r, d) + (v - 1)g forwards, where d is the sum of two neighboring groups (usually 2g): two forwards per rank
    behind would deadlock. Idle time is at most (p - 1)(F + B) per group if d >= p - 1; for smaller groups it has no
    formula and can be several times as much. With n equal groups of g >= p/2, it is ((p - 1 + (v - 1)(p - g))(F + B) +
    (n - 1)(v - 1) max(pB - g(F + B), 0))/v. Megatron-Core and PyTorch refuse such groups.

    The variants differ in their default group size. ``pytorch``, the default, uses g = m / max(1, m // p); if that is
    not an integer (PyTorch then raises an error), the smallest size from p on for which the usual warm-up is free of
    deadlock. ``megatron`` uses g = p and always the usual warm-up, as Megatron-Core's code does. It shows what groups cost
    that Megatron-Core refuses before a run: those smaller than p, and last groups smaller than p.

    Source: Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters (2021), section 2.2; orders and
    group sizes after Megatron-Core's get_schedule_table. The shorter warm-up and its formulas are pipeplan's own.

    Raises
    ------
    ShapeError
        If the group size is larger than m, or deadlocks with the warm-up of the variant megatron.
    """
    group = group_size(shape, "interleaved-1f1b")

    def row(forwards: Columns, backwards: Columns, rank: int) -> Columns:
        return one_forward_one_backward(forwards, backwards, _warm_up(shape, "interleaved-1f1b", group, rank))

    return interleaved_rows(shape, group, Kind.B, row)


def build_interleaved_1f1b_overlap(shape: Shape) -> Schedule:
    """Interleaved 1F1B with one more forward in the warm-up, after which forwards and backwards run as overlapped pairs.

    The extra forward makes the two ops of a pair independent, so that the computation of one hides the communication of
    the other.

    Two ranks with two chunks, two microbatches, in units of one stage's forward; a pair takes F + B::

        rank 0 | 0F0  0F1  2F0  2F1  .    .    .    2B0  --   2B1  --   0B0  --   0B1  --
        rank 1 | .    1F0  1F1  3F0  (3F1 3B0) --   3B1  --   1B0  --   1B1  --   .    .

    If a pair takes F + B, idle time is that of interleaved-1f1b, except that with a last group smaller than p it is at most
    (5v - 2)(p - 1)/v forwards if the usual warm-up is free of deadlock (no formula otherwise), and with groups smaller than
    p at most (p - 1)(F + B) per group. The peak is min(2(p - 1) + (v - 1)g + 2, mv)/v activations.

    Source: the public pipeline-schedule visualizer's "interleaved 1F1B with overlapped forward and backward".

    Raises
    ------
    ShapeError
        If the group size is larger than m, or if two neighboring groups sum to less than p, which deadlocks.
    """
    group = group_size(shape, "interleaved-1f1b-overlap")

    def row(forwards: Columns, backwards: Columns, rank: int) -> Columns:
        return forward_with_backward(forwards, backwards, _warm_up(shape, "interleaved-1f1b-overlap", group, rank) + 1)

    return interleaved_rows(shape, group, Kind.B, row)


def build_interleaved_zb(shape: Shape) -> Schedule:
    """Interleaved 1F1B with split backwards; on rank r, weight backwards start r input backwards later.

    Because an input backward is shorter than a full one, the warm-up needs only min(p - 1 - r + (v - 1)g, mv) forwards, and
    the delayed weight backwards fill the cool-down. With one chunk and m >= p this is ZB-H1.

    Two ranks with two chunks, four microbatches in groups of two, in units of one stage's forward::

        rank 0 | 0F0 0F1 2F0 2F1 .   2I0 2W0 0F2 2I1 2W1 0F3 0I0 0W0 2F2 0I1 0W1 2F3 2I2 2W2 2I3 2W3 0I2 0W2 0I3 0W3
        rank 1 | .   1F0 1F1 3F0 3I0 3F1 3I1 3W0 1F2 1I0 3W1 1F3 1I1 1W0 3F2 3I2 1W1 3F3 3I3 3W2 1I2 3W3 1I3 1W2 1W3

    With F = I = W, equal groups and m >= p, idle time is (p - 1)F/v. A last group of s < p microbatches adds
    (v - 1)(max(p - 2s, 0) + max(p - 3s, 0))F/v, and m < p adds (v(p - m) + (v - 1) max(p - 2m, 0))F/v. With groups smaller
    than p it is at most (p - 1)(F + I) per group if two neighboring ones sum to at least p - 1, and has no formula
    otherwise. The peak is min(p + (v - 1)g, mv)/v activations, on every rank if g >= p.

    Source: PyTorch's ScheduleInterleavedZeroBubble, after Qi et al., Zero Bubble Pipeline Parallelism (2023).

    Raises
    ------
    ShapeError
        If the group size is larger than m.
    """
    group = group_size(shape, "interleaved-zb")

    def row(forwards: Columns, backwards: Columns, rank: int) -> Columns:
        return with_delayed_weights(forwards, backwards, _warm_up(shape, "interleaved-zb", group, rank), rank)

    return interleaved_rows(shape, group, Kind.I, row)


def interleaved_rows(
    shape: Shape, group: int, backward: Kind, row: Callable[[Columns, Columns, int], Columns]
) -> Schedule:
    """Return the schedule whose ranks run ``row(forwards, backwards, rank)``, both in the order of the groups.

    With slices, groups count them; backwards take the slices of a microbatch in reverse.
    """
    p, m, v, k = shape.ranks, shape.microbatches, shape.chunks, shape.slices
    chunk, turn = in_groups(m * k, v, group)
    microbatch, part = np.divmod(turn, k) if k > 1 else (turn, np.zeros(1, np.int64))
    # These are the ops of rank 0; rank r runs the same for stages that are r larger.
    forwards, backwards = (
        ops(Kind.F, chunk * p, microbatch, part),
        ops(backward, (v - 1 - chunk) * p, microbatch, k - 1 - part),
    )
    rows = [
        row(replace(forwards, stage=forwards.stage + rank), replace(backwards, stage=backwards.stage + rank), rank)
        for rank in range(p)
    ]
    return Schedule.from_rows(Placement.loop(p, v), m, rows, slices=k)


def with_delayed_weights(forwards: Columns, backwards: Columns, warm_up: int, delay: int) -> Columns:
    """Return ``warm_up`` forwards, then in turn a forward, an input backward and a weight backward ``delay`` turns later."""
    weights = replace(backwards, kind=np.full_like(backwards.kind, Kind.W))
    return concatenate(
        forwards[:warm_up],
        alternate(forwards[warm_up : warm_up + delay], backwards[:delay]),
        alternate(forwards[warm_up + delay :], backwards[delay:], weights),
    )


def idle_of_full_backwards(shape: Shape, name: str, small_group_stalls: int) -> float:
    """Return the idle time of the strategies with full backwards, in forwards of a rank; infinite if it has no formula.

    ``small_group_stalls`` is how often a chunk stalls, for p - 1 forwards, in a last group smaller than p.
    """
    p, m, v = shape.ranks, shape.microbatches, shape.chunks
    group = group_size(shape, name)
    if v > 1 and group < min(p, m):
        return _idle_small(shape, name, group)
    if name == "interleaved-1f1b-overlap" and _least_sum(shape, group) < LEAST_SUM[name](p):
        return np.inf
    uneven = 0 < m % group < p
    stalls = small_group_stalls * (p - 1) if uneven else 3 * max(p - m, 0)
    return (3 * (p - 1) + (v - 1) * stalls) / v


def _idle_small(shape: Shape, name: str, group: int) -> float:
    """Return the idle time of the strategies with full backwards for groups smaller than the ranks."""
    p, m, v = shape.ranks, shape.microbatches, shape.chunks
    groups, last = -(-m // group), m % group
    if _least_sum(shape, group) < p - 1:
        return np.inf
    if name != "interleaved-1f1b" or shape.variant == "megatron" or last or 2 * group < p:
        return 3 * (p - 1) * groups
    return (3 * (p - 1 + (v - 1) * (p - group)) + (groups - 1) * (v - 1) * max(2 * p - 3 * group, 0)) / v


def _idle_zb(shape: Shape) -> float:
    p, m, v = shape.ranks, shape.microbatches, shape.chunks
    group = group_size(shape, "interleaved-zb")
    if v > 1 and group < min(p, m):
        return 2 * (p - 1) * -(-m // group) if _least_sum(shape, group) >= p - 1 else np.inf
    if m < p:
        return (p - 1 + v * (p - m) + (v - 1) * max(p - 2 * m, 0)) / v
    last = m % group or p
    return (p - 1 + (v - 1) * (max(p - 2 * last, 0) + max(p - 3 * last, 0))) / v


def _peak(shape: Shape, name: str, beyond_warm_up: int) -> float:
    """Return the peak activations if a rank holds so many forwards beyond its warm-up; rank 0 has the longest."""
    group = group_size(shape, name)
    held = _warm_up(shape, name, group, 0) + beyond_warm_up
    return min(held, shape.microbatches * shape.chunks) / shape.chunks


def _peak_zb(shape: Shape) -> float:
    # On rank r, r delayed weight backwards hold what the warm-up is shorter.
    held = shape.ranks + (shape.chunks - 1) * group_size(shape, "interleaved-zb")
    return min(held, shape.microbatches * shape.chunks) / shape.chunks


_ACCEPTS = "any p, m, v; group size 1 to m"

interleaved_1f1b = Strategy(
    name="interleaved-1f1b",
    title="1F1B over several chunks per rank, microbatches in groups",
    placement="loop",
    shapes=f"{_ACCEPTS}; megatron: with 2g >= 2(p-1), and m divisible by it or m mod g >= 2(p-1) - g",
    bubble=Formula(
        "(p-1)(F+B)/v; m < p: (p-1 + (v-1)(p-m))(F+B)/v; last group < p: at most (p-1)(4v-1)F/v; "
        "all groups < p: at most (p-1)(F+B) per group if two sum to p-1 or more, no formula otherwise",
        lambda shape: idle_of_full_backwards(shape, "interleaved-1f1b", 4),
    ),
    memory=Formula(
        "min(2(p-1) + (v-1)g + 1, mv)/v; less if g < p",
        lambda shape: _peak(shape, "interleaved-1f1b", 1),
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
    bubble=Formula(
        "(p-1)F/v; a group < p: at most (p-1)(F+I) per group if two sum to p-1 or more, no formula otherwise",
        _idle_zb,
    ),
    memory=Formula("min(p + (v-1)g, mv)/v", _peak_zb),
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
    shapes=f"{_ACCEPTS}; two neighboring groups with at least p microbatches",
    bubble=Formula(
        "(p-1)(F+B)/v; m < p: (p-1 + (v-1)(p-m))(F+B)/v; last group < p: at most (p-1)(5v-2)F/v if it "
        "and g sum to 2p-1 or more, no formula otherwise; all groups < p: at most (p-1)(F+B) per group",
        lambda shape: idle_of_full_backwards(shape, "interleaved-1f1b-overlap", 5),
    ),
    memory=Formula(
        "min(2(p-1) + (v-1)g + 2, mv)/v; less if g < p",
        lambda shape: _peak(shape, "interleaved-1f1b-overlap", 2),
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
"""Minimum sum of two neighboring groups on p ranks for which the usual warm-up of a strategy is free of deadlock."""


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
        If the size is larger than the microbatches or deadlocks.
    """
    p, m, g = shape.ranks, shape.microbatches, shape.group_size
    if g is None:
        g = min(p, m) if shape.variant == "megatron" else _pytorch_group(shape, name)
    require(g <= m, name, f"needs a group size of 1 to {m} for this shape, not {g}", field="group_size")
    if shape.variant == "megatron" or name == "interleaved-1f1b-overlap":
        _require_running(shape, name, g)
    return g


def _require_running(shape: Shape, name: str, group: int) -> None:
    """Raise ShapeError if groups deadlock: with Megatron's warm-up, or as overlapped pairs with any."""
    p, m, variant = shape.ranks, shape.microbatches, f"(variant {shape.variant}) " if shape.variant else ""
    needs, last = LEAST_SUM[name](p) if variant else p, m % group
    left = f" with a last group of {last}" if last else ""
    require(
        _least_sum(shape, group) >= needs,
        name,
        f"{variant}deadlocks: {m} microbatches are in groups of {group}{left}, and two neighboring groups must sum to at "
        f"least {needs} with {p} ranks; group size {_next_group(shape, needs, group)} is free of deadlock",
        field="group_size",
    )


def _pytorch_group(shape: Shape, name: str) -> int:
    """Return m / max(1, m // p), PyTorch's group size, or if that is not an integer a deadlock-free size from p on."""
    p, m = shape.ranks, shape.microbatches
    rounds = max(1, m // p)
    return m // rounds if m % rounds == 0 else _next_group(shape, LEAST_SUM[name](p), p)


def _next_group(shape: Shape, least: int, group: int) -> int:
    """Return the smallest size from ``group`` up whose groups sum to ``least``, as one group of all microbatches does."""
    return next(g for g in range(group, shape.microbatches + 1) if _least_sum(shape, g) >= least)


def _least_sum(shape: Shape, group: int) -> float:
    """Return the smallest sum of two neighboring groups that can wait for each other; infinite if none can."""
    full, last = divmod(shape.microbatches, group)
    sums = []
    if shape.chunks > 1 and full > 1:
        sums += [2 * group] if full > 2 or last or group * (shape.chunks - 1) >= 2 else []
    if full and last * (shape.chunks - 1) >= 2:
        sums += [group + last]
    return min(sums, default=np.inf)


def _warm_up(shape: Shape, name: str, group: int, rank: int) -> int:
    """Return how many forwards a rank runs before its first backward (or pair)."""
    return ahead_of_groups(shape, name, group, rank) + (shape.chunks - 1) * group


def ahead_of_groups(shape: Shape, name: str, group: int, rank: int) -> int:
    """Return how many forwards beyond v - 1 groups a rank runs before its first backward (or pair)."""
    behind, least = shape.ranks - 1 - rank, _least_sum(shape, group)
    usual = behind if name == "interleaved-zb" else 2 * behind
    small = shape.chunks > 1 and group < min(shape.ranks, shape.microbatches) and name == "interleaved-1f1b"
    if shape.variant == "megatron" or (least >= LEAST_SUM[name](shape.ranks) and not small):
        return usual
    if name == "interleaved-1f1b-overlap":
        # Two ranks with equally long warm-ups would wait for each other's pair: each has at least one forward more.
        return behind + int(min(behind, least - shape.ranks))
    return int(min(behind, least))
