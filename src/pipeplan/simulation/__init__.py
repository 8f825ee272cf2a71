"""Simulation: from a schedule and costs to a timeline, its memory, lower bounds, and the reasons why ranks idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.simulation.bounds import (
        Bound as Bound,
        earliest_starts as earliest_starts,
        lower_bound as lower_bound,
        span_bound as span_bound,
    )
    from pipeplan.simulation.chain import compute_only as compute_only, timed_only as timed_only
    from pipeplan.simulation.critical import (
        Cause as Cause,
        CriticalPath as CriticalPath,
        cause_of_delay as cause_of_delay,
        critical_ops as critical_ops,
        critical_path as critical_path,
    )
    from pipeplan.simulation.idle import IdleTimes as IdleTimes, idle_times as idle_times
    from pipeplan.simulation.idle_gaps import WAITS as WAITS
    from pipeplan.simulation.simulator import (
        Simulation as Simulation,
        memory_use as memory_use,
        message_partners as message_partners,
        message_times as message_times,
        recomputed_stages as recomputed_stages,
        simulate as simulate,
        step_time as step_time,
    )
    from pipeplan.simulation.what_if import (
        WhatIf as WhatIf,
        shortened as shortened,
        what_ifs as what_ifs,
        work_of_microbatches as work_of_microbatches,
    )
    from pipeplan.simulation.windows import (
        LocatedWindow as LocatedWindow,
        RoundTrips as RoundTrips,
        Window as Window,
        located_windows as located_windows,
    )
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
