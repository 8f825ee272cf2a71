"""The arrays that a wide problem has beside the others: legend and shapes are those of ``arrays``."""

from __future__ import annotations

from typing import NamedTuple, cast

from pipeplan.model import Floats, Ints


class WideProblem(NamedTuple):
    """What a wide problem has beside a flat one.

    Attributes
    ----------
    recomputing
        How long a class's R takes before its backward, for both classes of a stage; shape (classes,), like all that follow.
    recompute_keeps
        What a forward takes that is recomputed: the R takes the rest.
    copying
        How long a copy to the host, or back, takes.
    offloaded
        What OFFLOAD frees, and RELOAD takes.
    sending
        How long the transfer of the class's own result takes; 0 where it stays on the rank.
    link
        The link that it takes, -1 for none. Where transfers hinder nobody there are none.
    modes
        1 for every mode that may be decided on; shape (3,).
    factors
        For every scenario what each op takes longer by, as a factor: forwards and backwards, then their Ws, then their Rs,
        each by the number of the op; shape (scenarios * 3 * ops,), empty where there are no scenarios.
    least_factor
        The least of these on each rank; shape (scenarios * ranks,).
    """

    recomputing: Floats
    recompute_keeps: Floats
    copying: Floats
    offloaded: Floats
    sending: Floats
    link: Ints
    modes: Ints
    factors: Floats
    least_factor: Floats


class WideTiming(NamedTuple):
    """What timing a candidate of a wide problem writes beside the rest.

    Attributes
    ----------
    begun
        How many Ws a rank has run; shape (ranks,), like the next six.
    queued, left_in
        Where in ``queue`` the next offloaded forward goes, and where the oldest stands whose OFFLOAD has no place yet.
    ahead
        The first place behind which no RELOAD has been given a place.
    out_free, in_free
        When the link to the host, and the one from it, is free.
    looked
        How many ops of a class stand before ``ahead``; shape (classes,).
    link_free
        When each link is free; shape (links,).
    ran
        The number of the I of the k-th W of a rank, at ``offsets[rank] + k``; shape (positions,), like the next four.
    op_at
        The number of the op at a place.
    queue
        Numbers of forwards that are offloaded, in their order; rank r's from ``offsets[r]`` on.
    offloads, reloads
        How many OFFLOADs, and RELOADs, stand right before the op at a place, behind its Ws.
    copied, returned
        When the copy of a forward to the host, and the one back, has ended; the latter is below 0 before it has begun.
        Shape (ops,), like the next.
    gone
        1 once the OFFLOAD of a forward has its place.
    values
        The value in each scenario; shape (scenarios,).
    """

    begun: Ints
    queued: Ints
    left_in: Ints
    ahead: Ints
    out_free: Floats
    in_free: Floats
    looked: Ints
    link_free: Floats
    ran: Ints
    op_at: Ints
    queue: Ints
    offloads: Ints
    reloads: Ints
    copied: Floats
    returned: Floats
    gone: Ints
    values: Floats


NO_WIDE_PROBLEM = cast(WideProblem, ())
"""In a problem that is not wide: kernels that do not ask for it take it no time."""

NO_WIDE_TIMING = cast(WideTiming, ())
"""The same in the timing of its candidates."""
