"""A plan and its costs give a timeline, memory, a bound, and the reasons for what is lost."""

from pipeplan.simulate.bounds import Bound, earliest_starts, lower_bound, span_bound
from pipeplan.simulate.critical import CriticalPath, critical_path
from pipeplan.simulate.idle import IdleTimes, Reason, idle_times
from pipeplan.simulate.memory import memory_use
from pipeplan.simulate.simulator import Communication, Simulation, simulate
from pipeplan.simulate.what_if import WhatIf, what_ifs

__all__ = [
    "Bound",
    "Communication",
    "CriticalPath",
    "IdleTimes",
    "Reason",
    "Simulation",
    "WhatIf",
    "critical_path",
    "earliest_starts",
    "idle_times",
    "lower_bound",
    "memory_use",
    "simulate",
    "span_bound",
    "what_ifs",
]
