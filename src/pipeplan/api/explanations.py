"""Why ranks idle, what the critical path is made of, and what would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack, final

from pipeplan.api.arguments import Given, ScheduleLike, asked
from pipeplan.api.presentable import Presentable
from pipeplan.api.results import Result
from pipeplan.api.simulations import simulated, timed
from pipeplan.api.sources import label, opened
from pipeplan.costs import Settings
from pipeplan.drawing import View
from pipeplan.errors import PipeplanError
from pipeplan.model import Floats, Timeline
from pipeplan.simulation import CriticalPath, IdleTimes, Reason, Simulation, WhatIf, critical_path, what_ifs


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
        Changes, each with the makespan it would give: simulated again, not guessed. Empty for a timeline that has its times
        already.
    """

    result: Result
    idle: IdleTimes
    path: CriticalPath
    what_ifs: tuple[WhatIf, ...]

    @cached_property
    def totals(self) -> Floats:
        """Idle time by rank and reason, shape (ranks, reasons)."""
        return self.idle.totals(self.result.schedule.ranks)

    def views(self) -> Sequence[View]:
        """The result's timeline with the reasons in its gaps."""
        return [self.result.view(reasons=True)]

    def to_dict(self) -> dict[str, Any]:
        """The result's figures, and under ``explain`` the reasons by rank, the critical path and the what-ifs."""
        path, makespan = self.path, self.result.makespan
        return self.result.to_dict() | {
            "explain": {
                "reasons": {reason.key: self.totals[:, reason].tolist() for reason in Reason},
                "critical_path": {
                    "by_kind": {kind.name: time for kind, time in path.by_kind.items()},
                    "by_stage": path.by_stage.tolist(),
                    "overhead": path.overhead,
                    "transfer": path.transfer,
                    "ops": len(path.ops),
                },
                "what_ifs": [
                    {"change": what.change, "makespan": what.makespan, "gain": makespan - what.makespan}
                    for what in self.what_ifs
                ],
            }
        }

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


def explain(schedule: ScheduleLike | None = None, /, **settings: Unpack[Given]) -> Explanation:
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
    >>> explanation.what_ifs[0].change
    'transfers free'
    """
    return explained(*asked(schedule, settings))


def explained(source: ScheduleLike, settings: Settings) -> Explanation:
    """See :func:`explain`."""
    found = opened(source)
    result = timed(found, settings, called=label(source))
    stands = isinstance(found, Timeline) and result.timeline is found
    return Explanation(
        result,
        result.idle_times(),
        critical_path(result.timeline, result.costs),
        () if stands else _what_ifs(found if isinstance(found, str) else None, settings, result),
    )


def _what_ifs(name: str | None, settings: Settings, result: Result) -> tuple[WhatIf, ...]:
    changes = what_ifs(Simulation(result.timeline, result.costs), communication=settings.communication)
    return (*changes, *([] if name is None else _more_microbatches(name, settings, result)))


def _more_microbatches(name: str, settings: Settings, result: Result) -> list[WhatIf]:
    """The same strategy with one more microbatch, or with the fewest more that it takes."""
    for more in (1, 2):
        try:
            grown = simulated(name, replace(settings, microbatches=result.schedule.microbatches + more))
        except PipeplanError:
            continue
        return [WhatIf(f"{more} more microbatch{'es' if more > 1 else ''}", grown.makespan)]
    return []
