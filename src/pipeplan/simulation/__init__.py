"""Simulation: from a schedule and costs to a timeline, its memory, lower bounds, and the reasons why ranks idle."""

from pipeplan.foundation.lazy import lazy_names

_HOMES = {
    "bounds": "Bound earliest_starts lower_bound span_bound",
    "communication": "inner_communication",
    "critical": "Cause CriticalPath cause_of_delay compute_only critical_ops critical_path timed_only",
    "idle": "IdleTimes idle_times",
    "idle_gaps": "WAITS",
    "op_classes": "pair_savings",
    "own_times": "TIMED_KINDS gap_of settings_measured transfer_of with_op_times",
    "posting": "post_in_order post_messages",
    "simulator": "Simulation memory_use recomputed_stages simulate step_time",
    "streams": "held_up_by",
    "what_if": "HYPOTHETICAL WhatIf shortened what_ifs work_of_microbatches work_of_stages",
    "windows": "LocatedWindow RoundTrips Window located_windows",
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _HOMES)
