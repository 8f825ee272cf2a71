"""How a search came to a schedule, what it has proven, and what it gained over the published ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pipeplan.model import tolerances
from pipeplan.readable import change
from pipeplan.simulation import Bound

if TYPE_CHECKING:
    from pipeplan.api.searching.decisions import Decided
    from pipeplan.simulation import Communication
    from pipeplan.solver import Objective, PlacementTried, Robustness

Of = Literal["plan", "p95", "worst"]


@dataclass(frozen=True, slots=True)
class PublishedSchedule:
    """A published schedule on a search's costs and within its limits.

    Attributes
    ----------
    name, placement
        Its name, with its variant or group where that is not its own, and that of its placement.
    value
        The objective.
    """

    name: str
    placement: str
    value: float

    def to_dict(self) -> dict[str, Any]:
        """``schedule``, ``placement``, ``value``."""
        return {"schedule": self.name, "placement": self.placement, "value": self.value}


@dataclass(frozen=True, slots=True)
class Need:
    """What a published schedule needs on its worst rank, in bytes with everything static included, or in activations."""

    name: str
    memory: float
    in_activations: bool


@dataclass(frozen=True, kw_only=True)
class SearchRecord:
    """How a search came to a schedule, what it has proven, and what it gained.

    Attributes
    ----------
    objective, value, bound
        What was made small, what it is, and the least that it can be.
    nominal
        With a slow rank, a lower bound on the objective of the plan, in which none is slow.
    optimal
        Whether the bound proves that no schedule of the placement has a smaller one; of spans, none whose ops start as soon
        as they can.
    found_by
        The engine that found it, and what it started from.
    evaluations, seconds
        What the search spent.
    interrupted
        Whether the user stopped it before its budget was spent.
    compiled_after
        Seconds of the budget after which it ran on compiled kernels, 0 from its start; None: some were never ready.
    placement, tried
        The name of the schedule's placement, and what is known of each placement that could have won.
    decided
        What the schedule decided beside its order, and what the search was free to decide.
    communication
        How transfers behave.
    jitter, slow_rank
        By how much op times vary, or one rank is slower; None where that was not asked for.
    robustness, published_robustness
        The objective in the runs that it is judged by, and that of the best published schedule; None where nothing varies.
    best_published
        The best published schedule of the search's placement within the limit; None where none fits.
    best_published_anywhere
        The best one of any placement; None where none fits, and for shapes so large that others were not looked at.
    least_need
        Where no published schedule of the placement fits: the one that needs the least memory.
    """

    objective: Objective
    value: float
    bound: Bound
    optimal: bool
    found_by: str
    evaluations: int
    seconds: float
    decided: Decided
    nominal: Bound | None = None
    interrupted: bool = False
    compiled_after: float | None = 0.0
    placement: str = ""
    tried: tuple[PlacementTried, ...] = ()
    communication: Communication = "edge"
    jitter: float | None = None
    slow_rank: float | None = None
    robustness: Robustness | None = None
    published_robustness: Robustness | None = None
    best_published: PublishedSchedule | None = None
    best_published_anywhere: PublishedSchedule | None = None
    least_need: Need | None = None

    @property
    def of(self) -> Of:
        """Which number is small: the objective of the plan, its p95 under jitter, or its worst with a slow rank."""
        if self.slow_rank is not None:
            return "worst"
        return "plan" if self.jitter is None else "p95"

    @property
    def gap(self) -> float:
        """``value / bound - 1``: how far from optimal the objective can be."""
        return self.bound.gap_of(self.value)

    @property
    def gain(self) -> float | None:
        """By what share the objective is smaller than that of the best published schedule of its placement."""
        return None if self.best_published is None else _gain(self.value, self.best_published)

    @property
    def gain_anywhere(self) -> float | None:
        """By what share it is smaller than that of the best published schedule of any placement; below 0: larger."""
        return None if self.best_published_anywhere is None else _gain(self.value, self.best_published_anywhere)

    @property
    def gain_in_short(self) -> str:
        """The gain behind a comma, for one line; empty where no published schedule fits."""
        if self.best_published is None or self.gain is None:
            return ""
        return f", {change(-self.gain)} against {self.best_published.name}"

    def to_dict(self) -> dict[str, Any]:
        """What ``search --json`` adds to the JSON of one result."""
        here, anywhere = self.best_published, self.best_published_anywhere
        return {
            "found_by": self.found_by,
            "optimal": self.optimal,
            "evaluations": self.evaluations,
            "seconds": self.seconds,
            "interrupted": self.interrupted,
            "compiled_after": self.compiled_after,
            "placements": [
                {
                    "placement": each.placement.name,
                    "chunks": each.placement.chunks,
                    "lower_bound": each.bound,
                    "value": each.value,
                }
                for each in self.tried
            ],
            "objective": {
                "name": self.objective,
                "of": self.of,
                "value": self.value,
                "lower_bound": self.bound.value,
                "bound_reason": self.bound.reason,
                "gap": self.gap,
            },
            "jitter": None if self.jitter is None else self._judged({"deviation": self.jitter}, "p95"),
            "slow_rank": None if self.slow_rank is None else self._judged({"share": self.slow_rank}, "worst"),
            "communication": self.communication,
            "decided": self.decided.to_dict(),
            "best_published": None if here is None else here.to_dict(),
            "gain": self.gain,
            "best_published_anywhere": None if anywhere is None else anywhere.to_dict(),
            "gain_anywhere": self.gain_anywhere,
        }

    def _judged(self, asked: dict[str, float], what: str) -> dict[str, Any]:
        """How the schedule does in the runs that it is judged by, and how the best published one does."""
        ours, theirs = self.robustness, self.published_robustness
        assert ours is not None
        published = None if theirs is None else getattr(theirs, what)
        return asked | {"mean": ours.mean, what: getattr(ours, what), f"published_{what}": published}


def _gain(value: float, published: PublishedSchedule) -> float:
    return _rounded(1 - value / published.value)


def _rounded(share: float) -> float:
    return 0.0 if abs(share) <= tolerances.ROUNDING else share
