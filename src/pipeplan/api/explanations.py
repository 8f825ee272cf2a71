"""Why ranks idle, what the critical path is made of, and what would help."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pipeplan.api.commands import given, simulate_with
from pipeplan.api.results import Result
from pipeplan.api.sources import Source
from pipeplan.costs import Settings
from pipeplan.errors import PipeplanError
from pipeplan.simulation import CriticalPath, IdleTimes, Reason, WhatIf, critical_path, what_ifs


@dataclass(frozen=True, eq=False)
class Explanation:
    """What a result loses, and to what.

    Attributes
    ----------
    result
        The schedule on its costs.
    idle
        Every idle moment of every rank with its reason; the reasons add up to the idle time.
    path
        The chain of ops and messages that made the makespan what it is.
    what_ifs
        Changes, each with the makespan it would give: simulated again, not guessed.
    """

    result: Result
    idle: IdleTimes
    path: CriticalPath
    what_ifs: tuple[WhatIf, ...]

    @cached_property
    def totals(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Idle time by rank and reason, shape (ranks, reasons)."""
        return self.idle.totals(self.result.schedule.ranks)

    def to_dict(self) -> dict[str, Any]:
        """The result's figures, and under ``explain`` the reasons by rank, the critical path and the what-ifs."""
        path, makespan = self.path, self.result.makespan
        return self.result.to_dict() | {
            "explain": {
                "reasons": {reason.key: self.totals[:, reason].tolist() for reason in Reason},
                "critical_path": {
                    "by_kind": {kind.name: time for kind, time in path.by_kind.items()},
                    "by_stage": path.by_stage.tolist(),
                    "transfer": path.transfer,
                    "ops": len(path.ops),
                },
                "what_ifs": [
                    {"change": what.change, "makespan": what.makespan, "gain": makespan - what.makespan}
                    for what in self.what_ifs
                ],
            }
        }


def explain(schedule: Source = "1f1b", /, **settings: Any) -> Explanation:
    """Why each rank idles on these costs. Takes and raises what :func:`~pipeplan.api.commands.simulate` does."""
    return explain_with(schedule, given(settings))


def explain_with(source: Source, settings: Settings) -> Explanation:
    """See :func:`explain`."""
    result = simulate_with(source, settings)
    idle = result.idle_times()
    changes = what_ifs(result.simulation, communication=settings.communication)
    return Explanation(
        result,
        idle,
        critical_path(result.timeline),
        (*changes, *_one_more_microbatch(source, settings, result)),
    )


def _one_more_microbatch(source: Source, settings: Settings, result: Result) -> list[WhatIf]:
    """The same strategy with one more microbatch, or with the fewest more that it takes; none for a schedule by hand."""
    if not isinstance(source, str):
        return []
    for more in (1, 2):
        try:
            grown = simulate_with(source, replace(settings, microbatches=result.schedule.microbatches + more))
        except PipeplanError:
            continue
        return [WhatIf(f"{more} more microbatch{'es' if more > 1 else ''}", grown.makespan)]
    return []
