"""DualPipe and DualPipeV: two streams of microbatches cross, and forwards of one overlap with backwards of the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeplan.model import NO_GROUP, Columns, Kind, Placement, Schedule, alternate, concatenate, ops, overlap
from pipeplan.strategies.protocol import Formula, Shape, Strategy, require, require_two_directions


def _require_dualpipe(shape: Shape) -> None:
    require_two_directions(shape, "dualpipe")
    _require_microbatches(shape, "dualpipe", 2 * shape.ranks - 2)


def _require_microbatches(shape: Shape, name: str, least: int) -> None:
    require(
        shape.microbatches >= least,
        name,
        f"on {shape.ranks} ranks needs at least {least} microbatches, not {shape.microbatches}",
        field="microbatches",
    )


def build_dualpipe(shape: Shape) -> Schedule:
    """Microbatches enter at both ends; in the middle of the step every rank overlaps a forward with a backward.

    The first half of the microbatches enters at rank 0, the second half at rank p - 1, each on its own copy of the model.
    The communication of a forward is hidden by the backward that it overlaps with; split backwards shorten both ends.

    Four ranks, six microbatches, F = 1, B = 2, I = W = 1::

        rank 0 | 0F0  0F1  0F2  3F3  3I3  3W3  3F4  3B4  --   .    .    (3F5 0B0) --   3B5  --   0I1  0W1  0I2  0W2
        rank 1 | .    1F0  2F3  1F1  2F4  1F2  2B3  --   (2F5 1B0) --   2B4  --   1B1  --   .    2I5  1I2  2W5  1W2
        rank 2 | .    1F3  2F0  1F4  2F1  1F5  2B0  --   (2F2 1B3) --   2B1  --   1B4  --   .    2I2  1I5  2W2  1W5
        rank 3 | 0F3  0F4  0F5  3F0  3I0  3W0  3F1  3B1  --   .    .    (3F2 0B3) --   3B2  --   0I4  0W4  0I5  0W5

    Idle time is (p/2 - 1)(FB + B - 3W) with FB for an overlapped pair: p - 2 where FB = F + B and F = I = W. The peak is
    p + 1 activations, and every rank holds the parameters of two stages. Valid for even p and m, m >= 2p - 2.

    Source: DeepSeek-AI, DeepSeek-V3 Technical Report (2024), section 3.2.1, and the DualPipe code published with it.
    """
    ranks, microbatches = shape.ranks, shape.microbatches
    rows = []
    for rank in range(ranks):
        down, up = rank, ranks - 1 - rank
        order = _order(min(down, up), max(down, up), microbatches // 2)
        rows.append(_numbered(order, {down: 0, up: microbatches // 2}))
    return Schedule.from_rows(Placement.bidirectional(ranks), microbatches, rows)


def build_dualpipev(shape: Shape) -> Schedule:
    """DualPipe cut in half at its middle: one copy of the model on a V, whose two legs are the two streams.

    The same ranks then run a pipeline twice as deep, and hold no parameters twice.

    Two ranks, three microbatches, in units of one stage: F = 1, B = 2, I = W = 1::

        rank 0 | 0F0  0F1  0F2  3F0  3I0  3W0  3F1  3B1  --   .    .    (3F2 0B0) --   3B2  --   0I1  0W1  0I2  0W2
        rank 1 | .    1F0  2F0  1F1  2F1  1F2  2B0  --   (2F2 1B0) --   2B1  --   1B1  --   .    2I2  1I2  2W2  1W2

    Idle time is (p - 1)(FB + B - 3W) with times of one stage: p - 1 where FB = F + B and F = I = W are of a rank, two
    stages. The peak is p + 1/2 activations. Valid for m >= 2p - 1 (PyTorch requires one more).

    Source: Sea AI Lab, DualPipe Could Be Better Without the Dual (2025); the order is PyTorch's ScheduleDualPipeV.
    """
    ranks, microbatches = shape.ranks, shape.microbatches
    rows = []
    for rank in range(ranks):
        down, up = rank, 2 * ranks - 1 - rank
        rows.append(_numbered(_order(down, up, microbatches), {down: 0, up: 0}))
    return Schedule.from_rows(Placement.v(ranks), microbatches, rows)


def _order(near: int, far: int, microbatches: int) -> Columns:
    """Return one rank's kinds and stages in order, with all microbatches 0 (:func:`_numbered` fills them in).

    The phases are: forwards of the near stream; forwards of both; split backwards of the far stream between its
    forwards; overlapped pairs; the pairs that remain when the near stream has no forwards left; backwards, the later
    ones split; weight backwards. Their lengths follow from the number of ranks to the middle (inward) and to the end
    (outward).

    Parameters
    ----------
    near, far
        Stages of the two streams on this rank; the near stream reaches the rank first.
    microbatches
        Microbatches of one stream.
    """
    inward, outward = (far - near) // 2, near + 1
    steady = microbatches - 2 * inward - outward
    return concatenate(
        _run(Kind.F, near, 2 * inward),
        alternate(_run(Kind.F, near, outward), _run(Kind.F, far, outward)),
        alternate(_run(Kind.I, far, inward), _run(Kind.W, far, inward), _run(Kind.F, far, inward)),
        _steady(near, far, steady, apart=int(inward == 0)),
        _drain(near, far, inward),
        ops(np.repeat([Kind.B, Kind.I], outward), np.tile([far, near], outward), 0),
        alternate(_run(Kind.W, near, inward), _run(Kind.I, near, inward)),
        _run(Kind.W, near, outward),
    )


def _run(kind: Kind, stage: int, count: int) -> Columns:
    return ops(kind, np.full(count, stage), 0)


def _steady(near: int, far: int, count: int, *, apart: int) -> Columns:
    """Return forwards and backwards of alternating streams as overlapped pairs, except for the first ``apart`` pairs."""
    forwards = alternate(_run(Kind.F, near, count), _run(Kind.F, far, count))
    backwards = alternate(_run(Kind.B, far, count), _run(Kind.B, near, count))
    return concatenate(forwards[:apart], backwards[:apart], overlap(forwards[apart:], backwards[apart:]))


def _drain(near: int, far: int, count: int) -> Columns:
    """Return ``count`` far backwards, each followed by a far forward overlapped with a near backward."""
    triples = alternate(_run(Kind.B, far, count), _run(Kind.F, far, count), _run(Kind.B, near, count))
    turn, place = np.divmod(np.arange(len(triples)), 3)
    return replace(triples, group=np.where(place == 0, NO_GROUP, turn).astype(np.int32))


def _numbered(order: Columns, first: dict[int, int]) -> Columns:
    """Return the ops with their microbatches filled in.

    Each stage's forwards and backwards are numbered from ``first[stage]``. Weight backwards are first in, first out:
    the n-th W belongs to the n-th I.
    """
    stage, microbatch = order.stage.copy(), order.microbatch.copy()
    for holder, start in first.items():
        for kinds in ((Kind.F,), (Kind.B, Kind.I)):
            where = np.flatnonzero((stage == holder) & np.isin(order.kind, kinds))
            microbatch[where] = np.arange(start, start + len(where))
    inputs, weights = order.kind == Kind.I, order.kind == Kind.W
    stage[weights], microbatch[weights] = stage[inputs], microbatch[inputs]
    return replace(order, stage=stage, microbatch=microbatch)


dualpipe = Strategy(
    name="dualpipe",
    title="two copies of the model in opposite directions, forward and backward overlapped",
    placement="bidirectional",
    shapes="p even, m even, m >= 2p - 2 (both directions together)",
    bubble=Formula("p - 2", lambda shape: shape.ranks - 2),
    memory=Formula("p + 1; p = m = 2: 2", lambda shape: min(shape.ranks + 1, shape.microbatches)),
    paper="DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, arXiv 2412.19437, section 3.2.1",
    build=build_dualpipe,
    requires=_require_dualpipe,
    aliases=("DualPipe",),
)

dualpipev = Strategy(
    name="dualpipev",
    title="DualPipe's two streams as the two legs of a V, with one copy of the model",
    placement="v",
    shapes="m >= 2p - 1",
    bubble=Formula("p - 1", lambda shape: shape.ranks - 1),
    memory=Formula("p + 1/2; p = m = 1: 1", lambda shape: min(shape.ranks + 0.5, shape.microbatches)),
    paper="Sea AI Lab, DualPipe Could Be Better Without the Dual, 2025; PyTorch's ScheduleDualPipeV",
    build=build_dualpipev,
    requires=lambda shape: _require_microbatches(shape, "dualpipev", 2 * shape.ranks - 1),
    chunks=2,
    aliases=("DualPipeV", "dualpipe_v"),
)

FAMILY = (dualpipe, dualpipev)
