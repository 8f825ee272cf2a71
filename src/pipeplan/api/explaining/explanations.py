"""Why ranks idle, what the critical path is made of, and what would help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack, final

from msgspec import UNSET, UnsetType

from pipeplan.api.arguments import Given, ScheduleLike, asked
from pipeplan.api.explaining.remedies import Remedy, remedies
from pipeplan.api.explaining.waits import Wait, longest_waits
from pipeplan.api.presentable import Presentable
from pipeplan.api.results import Result
from pipeplan.api.simulations import timed
from pipeplan.api.sources import label, opened
from pipeplan.costs import Settings
from pipeplan.drawing import View
from pipeplan.model import Floats, Timeline
from pipeplan.simulation import CriticalPath, IdleTimes, LocatedWindow, Reason, critical_path

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeplan.formats import Content, Format

LEAST_GAIN = 5e-4
"""The share of its time that a microbatch must save for a change to help: less is written as 0.0%."""


@final
@dataclass(frozen=True, eq=False)
class Explanation(Presentable):
    """What a result loses, and to what.

    ``to_frame()`` has a row a rank, and a column for each reason.

    Attributes
    ----------
    result
        The schedule on its costs, or the timeline as it was measured.
    idle
        Every idle moment of every rank with its reason; the reasons add up to the idle time.
    path
        The chain of ops and messages that made the makespan what it is.
    what_ifs
        Changes, each with the makespan it would give: simulated again, not guessed; the best first. Empty for a timeline
        that has its times already.
    """

    result: Result
    idle: IdleTimes
    path: CriticalPath
    what_ifs: tuple[Remedy, ...]

    @cached_property
    def totals(self) -> Floats:
        """Idle time by rank and reason, shape (ranks, reasons)."""
        return self.idle.totals(self.result.schedule.ranks)

    @property
    def per_microbatch(self) -> float:
        """The makespan by the number of microbatches."""
        return self.result.makespan / self.result.schedule.microbatches

    @property
    def helping(self) -> tuple[Remedy, ...]:
        """The changes that help, the best first.

        They make a microbatch shorter; over the memory limit, they are those that fit.
        """
        fits, enough = self.result.fits, self.per_microbatch * (1 - LEAST_GAIN)
        return tuple(what for what in self.what_ifs if what.fits and (not fits or what.per_microbatch < enough))

    @cached_property
    def waits(self) -> tuple[Wait | None, ...]:
        """The longest wait of every rank between its first op and its last; None where it has none."""
        return longest_waits(self.result.timeline, self.idle)

    @cached_property
    def windows(self) -> tuple[LocatedWindow, ...]:
        """The windows of the result: where its rank must idle under its memory limit."""
        return self.result.windows

    @property
    def sentences(self) -> tuple[str, ...]:
        """How long a microbatch takes, then how long each rank idles and for what; of many ranks, of those that say most."""
        from pipeplan.api.tables.explanations import sentences

        return sentences(self)

    @property
    def advice(self) -> str:
        """What to do next, in a sentence; empty for a timeline that has its times already."""
        from pipeplan.api.tables.explanations import closing

        return closing(self)

    def views(self) -> Sequence[View]:
        """The result's timeline with the reasons in its gaps."""
        return [self.result.view(reasons=True)]

    def to_dict(self) -> dict[str, Any]:
        """The result's figures, and under ``explain`` reasons and longest waits by rank, the path, windows and what-ifs."""
        path, makespan, trips = self.path, self.result.makespan, self.result.bound.round_trips
        return self.result.to_dict() | {
            "explain": {
                "reasons": {reason.key: self.totals[:, reason].tolist() for reason in Reason},
                "longest_waits": [None if wait is None else wait.to_dict() for wait in self.waits],
                "per_microbatch": self.per_microbatch,
                "critical_path": {
                    "by_kind": {kind.name: time for kind, time in path.by_kind.items()},
                    "by_stage": path.by_stage.tolist(),
                    "overhead": path.overhead,
                    "transfer": path.transfer,
                    "ops": len(path.ops),
                },
                "windows": [
                    {
                        "rank": None if trips is None else trips.rank,
                        "kind": each.window.kind,
                        "start": each.start,
                        "end": each.end,
                        "idle": each.idle,
                        "least_length": each.window.length,
                        "least_idle": each.window.idle,
                    }
                    for each in self.windows
                ],
                "what_ifs": [what.to_dict() | {"gain": makespan - what.makespan} for what in self.what_ifs],
            }
        }

    def contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """Return the writable contents of the result, with the idle reasons in its record and picture."""
        return {**self.result.contents(), "record": lambda _: self.to_dict(), "pictures": lambda _: self.views()}

    def table(self) -> Iterable[RenderableType]:
        """Return what ``print()`` shows."""
        from pipeplan.api.tables.explanations import explanation_parts  # late: tables load rich

        return explanation_parts(self)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        idle = self.result.timeline.idle
        return [
            {"rank": rank, "idle": float(idle[rank])} | {reason.key: float(row[reason]) for reason in Reason}
            for rank, row in enumerate(self.totals)
        ]

    def __repr__(self) -> str:
        shares = self.totals.sum(axis=0)
        most = Reason(int(shares.argmax())).key if shares.any() else "nothing"
        return f"<Explanation of {self.result.name}: idle time goes mostly to {most}>"


def explain(schedule: ScheduleLike | UnsetType = UNSET, /, **settings: Unpack[Given]) -> Explanation:
    """Why each rank idles, what the critical path is made of, and what would help.

    Parameters
    ----------
    schedule
        What :func:`pipeplan.simulate` takes; or a timeline, or the traces of a run, which is explained as it stands: with
        the times that were measured, or simulated before unless costs are given here.
    **settings
        Shape and costs.

    Raises
    ------
    InputError
        For times or transfers beside a measured timeline, and for what :func:`pipeplan.simulate` raises it.
    PipeplanError
        For what :func:`pipeplan.simulate` raises it.

    Examples
    --------
    >>> explanation = pipeplan.explain("1f1b", ranks=4, microbatches=8, p2p_time=0.5)
    >>> [what.change for what in explanation.helping[:2]]
    ['zb-h2', 'dualpipe']
    """
    return explained(*asked(schedule, settings))


def explained(source: ScheduleLike, settings: Settings) -> Explanation:
    """See :func:`explain`."""
    found = opened(source)
    result = timed(found, settings, called=label(source))
    stands = isinstance(found, Timeline) and result.timeline is found
    meant = found.schedule if isinstance(found, Timeline) else found
    return Explanation(
        result,
        result.idle_times(),
        critical_path(result.timeline, result.costs),
        () if stands else remedies(meant, settings, result),
    )
