"""Simulation: from a schedule and costs to a timeline, its memory, lower bounds, and the reasons why ranks idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.simulation.bounds import Bound, earliest_starts, lower_bound, span_bound
    from pipeplan.simulation.chain import compute_only, timed_only
    from pipeplan.simulation.critical import Cause, CriticalPath, cause_of_delay, critical_path
    from pipeplan.simulation.idle import IdleTimes, idle_times
    from pipeplan.simulation.idle_gaps import WAITS
    from pipeplan.simulation.idle_pieces import Reason
    from pipeplan.simulation.simulator import (
        Communication,
        Simulation,
        memory_use,
        message_partners,
        recomputed_stages,
        simulate,
        step_time,
    )
    from pipeplan.simulation.what_if import WhatIf, what_ifs
    from pipeplan.simulation.windows import LocatedWindow, RoundTrips, Window, located_windows

__all__ = [
    "WAITS",
    "Bound",
    "Cause",
    "Communication",
    "CriticalPath",
    "IdleTimes",
    "LocatedWindow",
    "Reason",
    "RoundTrips",
    "Simulation",
    "WhatIf",
    "Window",
    "cause_of_delay",
    "compute_only",
    "critical_path",
    "earliest_starts",
    "idle_times",
    "located_windows",
    "lower_bound",
    "memory_use",
    "message_partners",
    "recomputed_stages",
    "simulate",
    "span_bound",
    "step_time",
    "timed_only",
    "what_ifs",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "bounds": {"Bound", "earliest_starts", "lower_bound", "span_bound"},
            "chain": {"compute_only", "timed_only"},
            "critical": {"Cause", "CriticalPath", "cause_of_delay", "critical_path"},
            "idle": {"IdleTimes", "idle_times"},
            "idle_gaps": {"WAITS"},
            "idle_pieces": {"Reason"},
            "simulator": {
                "Communication",
                "Simulation",
                "memory_use",
                "message_partners",
                "recomputed_stages",
                "simulate",
                "step_time",
            },
            "what_if": {"WhatIf", "what_ifs"},
            "windows": {"LocatedWindow", "RoundTrips", "Window", "located_windows"},
        },
    )
