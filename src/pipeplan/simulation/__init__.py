"""Simulation: from a schedule and costs to a timeline, its memory, lower bounds, and the reasons why ranks idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeplan.foundation.lazy import lazy_names

if TYPE_CHECKING:
    from pipeplan.simulation.bounds import Bound, earliest_starts, lower_bound, span_bound
    from pipeplan.simulation.critical import (
        Cause,
        CriticalPath,
        cause_of_delay,
        compute_only,
        critical_ops,
        critical_path,
        timed_only,
    )
    from pipeplan.simulation.idle import IdleTimes, idle_times
    from pipeplan.simulation.idle_gaps import WAITS
    from pipeplan.simulation.own_times import TIMED_KINDS, gap_of, settings_measured, transfer_of, with_op_times
    from pipeplan.simulation.posting import post_in_order, post_messages
    from pipeplan.simulation.simulator import (
        Simulation,
        memory_use,
        recomputed_stages,
        simulate,
        step_time,
    )
    from pipeplan.simulation.streams import held_up_by
    from pipeplan.simulation.what_if import WhatIf, shortened, what_ifs, work_of_microbatches, work_of_stages
    from pipeplan.simulation.windows import LocatedWindow, RoundTrips, Window, located_windows
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
