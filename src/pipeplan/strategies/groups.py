"""Groups of microbatches in interleaved schedules: their order, their default size, and which sizes can run.

A rank's forwards go through the groups, in a group through its chunks, in a chunk through its microbatches. Group sizes g
are from p to m (m itself where m < p): in smaller groups a chunk would come round late every time. If m is not a multiple
of g, the last group has s = m mod g microbatches. With one chunk, and with two chunks where s = 1, that runs as it is;
otherwise the schedule is free of deadlock exactly if

    ========================  ==================
    interleaved-1f1b          g + s >= 2(p - 1)
    interleaved-1f1b-overlap  g + s >= 2p - 1
    interleaved-zb            g + s >= p - 1, that is always
    ========================  ==================

Why, for interleaved-1f1b: count a rank's forwards and backwards from 0, and let w = 2(p-1-r) + (v-1)g be its
warm-up, so that forward w + j stands before backward j. Take forward k of the last group on rank 0, not on chunk 0.

1. It needs forward k - s on rank p-1, which stands behind backward j = k - s - (v-1)g - 1 there.
2. That backward, on any chunk but the last, needs backward j - g on rank 0.
3. Which stands behind forward j - g + 2(p-1) + (v-1)g = k - s - g - 1 + 2(p-1) there.

The circle closes where that forward is k or comes after it: where g + s + 1 <= 2(p-1). In the overlapped form a pair starts
together, which takes the 1 away; the zero-bubble warm-up has p-1-r in place of 2(p-1-r). Two full groups are the case s = g.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipeplan.model import Ints
from pipeplan.strategies.protocol import Shape, require

LEAST_SUM: dict[str, Callable[[int], int]] = {
    "interleaved-1f1b": lambda p: 2 * (p - 1),
    "interleaved-1f1b-overlap": lambda p: 2 * p - 1,
    "interleaved-zb": lambda p: p - 1,
}
"""The least g + s with which a strategy runs on p ranks."""


def in_groups(microbatches: int, chunks: int, group: int) -> tuple[Ints, Ints]:
    """Chunk and microbatch of a rank's forwards in order, each of shape (chunks * microbatches,)."""
    chunk, microbatch = np.divmod(np.arange(chunks * microbatches), microbatches)
    order = np.lexsort((microbatch, chunk, microbatch // group))
    return chunk[order], microbatch[order]


def group_size(shape: Shape, name: str) -> int:
    """The group size asked for, or the strategy's default.

    Raises
    ------
    ShapeError
        For a size that is out of range, deadlocks, or is not Megatron's under the variant of that name.
    """
    p, m, g = shape.ranks, shape.microbatches, shape.group_size
    if g is None:
        g = min(p, m) if shape.variant == "megatron" else _pytorch_group(shape, name)
    require(
        min(p, m) <= g <= m, name, f"takes groups of {min(p, m)} to {m} microbatches here, not {g}", field="group_size"
    )
    left = f"{m} microbatches in groups of {g} leave a last group of {m % g}"
    require(
        _runs(shape, name, g),
        name,
        f"deadlocks: {left}, and the two sizes must sum to at least {LEAST_SUM[name](p)} with {p} ranks; "
        f"groups of {_next_group(shape, name, g)} are free of deadlock",
        field="group_size",
    )
    require(
        shape.variant != "megatron" or not 0 < m % g < p,
        name,
        f"as Megatron has it needs a last group of at least {p} microbatches, one a rank: {left}",
        field="group_size",
    )
    return g


def _pytorch_group(shape: Shape, name: str) -> int:
    """The microbatches of a round, in as many rounds as there are ranks' worth of them; where uneven, about the ranks."""
    p, m = shape.ranks, shape.microbatches
    rounds = max(1, m // p)
    return m // rounds if m % rounds == 0 else _next_group(shape, name, p)


def _next_group(shape: Shape, name: str, group: int) -> int:
    """The smallest group size from ``group`` up that is free of deadlock; all microbatches in one group always are."""
    return next(g for g in range(group, shape.microbatches + 1) if _runs(shape, name, g))


def _runs(shape: Shape, name: str, group: int) -> bool:
    """Whether groups of this size, no smaller than the ranks, are free of deadlock: the module's rule."""
    last = shape.microbatches % group
    return last * (shape.chunks - 1) < 2 or group + last >= LEAST_SUM[name](shape.ranks)
