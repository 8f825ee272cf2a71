"""A schedule and costs give a timeline, memory, a bound, and the reasons why ranks idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.simulation.bounds import Bound, earliest_starts, lower_bound, span_bound
    from pipeplan.simulation.cause import Cause, cause_of_delay
    from pipeplan.simulation.chain import compute_only, timed_only
    from pipeplan.simulation.critical import CriticalPath, critical_path
    from pipeplan.simulation.idle import IdleTimes, idle_times
    from pipeplan.simulation.idle_gaps import WAITS
    from pipeplan.simulation.memory import memory_use
    from pipeplan.simulation.reason import Reason
    from pipeplan.simulation.simulator import Communication, Simulation, message_partners, recomputed_stages, simulate
    from pipeplan.simulation.step import step_time
    from pipeplan.simulation.what_if import WhatIf, what_ifs
    from pipeplan.simulation.window_places import LocatedWindow, located_windows
    from pipeplan.simulation.windows import RoundTrips, Window

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
            "cause": {"Cause", "cause_of_delay"},
            "chain": {"compute_only", "timed_only"},
            "critical": {"CriticalPath", "critical_path"},
            "idle": {"IdleTimes", "idle_times"},
            "idle_gaps": {"WAITS"},
            "memory": {"memory_use"},
            "reason": {"Reason"},
            "simulator": {"Communication", "Simulation", "message_partners", "recomputed_stages", "simulate"},
            "step": {"longest_span", "step_time"},
            "what_if": {"WhatIf", "what_ifs"},
            "window_places": {"LocatedWindow", "located_windows"},
            "windows": {"RoundTrips", "Window"},
        },
    )
