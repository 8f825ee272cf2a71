"""The published heuristics: like strategies, but they look at costs and memory limits, not at the shape alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeplan.costs import Costs, Limits
from pipeplan.errors import ShapeError, UnknownNameError
from pipeplan.model import Schedule
from pipeplan.strategies import zb_auto, zbv_heuristic

_PAPER = "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024"


@dataclass(frozen=True, slots=True)
class Heuristic:
    """A published rule that makes a schedule from costs.

    Attributes
    ----------
    name, title
        Its name on the command line, and what it is in one line.
    placement, chunks
        Name of the placement it uses, and its chunks a rank.
    accepts
        The shapes and costs it takes, in words.
    bubble, memory
        What its authors promise, in words.
    default_limit
        Under what memory limit it runs when nobody gives one, in words.
    paper
        Where it was published.
    build
        Makes the schedule from ranks, microbatches, costs and limits.
    """

    name: str
    title: str
    placement: str
    chunks: int
    accepts: str
    bubble: str
    memory: str
    default_limit: str
    paper: str
    build: Callable[[int, int, Costs, Limits | None], Schedule]

    def __call__(self, ranks: int, microbatches: int, costs: Costs, limits: Limits | None = None) -> Schedule:
        """The heuristic's schedule, named after it.

        Parameters
        ----------
        ranks, microbatches
            p and m.
        costs
            Of p x ``chunks`` stages in this heuristic's placement.
        limits
            The cap of every rank; see ``default_limit``.

        Raises
        ------
        ShapeError
            For less than one rank or microbatch.
        CostError
            For costs that do not fit the placement or this heuristic.
        InfeasibleError
            If it finds no schedule within the limits.
        """
        for what, value in (("ranks", ranks), ("microbatches", microbatches)):
            if value < 1:
                raise ShapeError(f"{what} must be at least 1, not {value}", field=what)
        return self.build(ranks, microbatches, costs, limits)


_ALL = (
    Heuristic(
        name=zb_auto.NAME,
        title="the zero-bubble authors' heuristic under a memory limit: ZB-1p with p activations, ZB-2p with 2p",
        placement="linear",
        chunks=1,
        accepts="any ranks and microbatches; times, memory and limits of each rank its own",
        bubble="about that of ZB-H1 with p activations, near none with 2p",
        memory="within the limit, from one activation a rank",
        default_limit="none",
        paper=f"{_PAPER}, section 3.1",
        build=zb_auto.zb_auto,
    ),
    Heuristic(
        name=zbv_heuristic.NAME,
        title="the zero-bubble authors' V-shaped heuristic under a memory limit",
        placement="v",
        chunks=2,
        accepts="any ranks and microbatches; the same times and memory on every stage",
        bubble="none with p activations, m >= 2p-1, F = I = W and free transfers; little with 1.5p in general",
        memory="within the limit, from p activations a rank",
        default_limit="p activations (2p chunk activations)",
        paper=f"{_PAPER}, section 6",
        build=zbv_heuristic.zbv_heuristic,
    ),
)

HEURISTICS: dict[str, Heuristic] = {heuristic.name: heuristic for heuristic in _ALL}
"""Every heuristic by its name."""


def heuristic(name: str) -> Heuristic:
    """The heuristic of this name.

    Raises
    ------
    UnknownNameError
        Naming the nearest one.
    """
    if name not in HEURISTICS:
        raise UnknownNameError("heuristic", name, HEURISTICS)
    return HEURISTICS[name]
