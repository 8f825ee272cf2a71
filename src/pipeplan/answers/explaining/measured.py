"""Costs of a measured timeline, on which what would help is simulated; the timeline itself keeps its times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pipeplan.answers.explaining.remedies import Remedies, remedies
from pipeplan.answers.published import Allowed
from pipeplan.answers.simulating.result import Result
from pipeplan.answers.simulating.simulate import simulated
from pipeplan.costs import SETTINGS, Settings
from pipeplan.foundation.errors import PipeplanError
from pipeplan.foundation.extensions import service
from pipeplan.foundation.readable import Times, change
from pipeplan.foundation.records import Record
from pipeplan.model import Kind, Schedule, Timeline
from pipeplan.simulation import settings_measured, timed_only


class FittedCosts(Record, frozen=True, kw_only=True):
    """Costs that were fitted to a measured timeline, on which changes were simulated.

    Attributes
    ----------
    makespan
        The measured order simulated on these costs; changes are compared with it.
    error
        By how much that is longer than the measured makespan, as a share of it; negative if it is shorter.
    sentence
        What the costs are, and how well they reproduce the run.
    """

    makespan: float
    error: float
    sentence: str


UNEXPLAINED = 0.1
"""Share of a measured step beyond its simulation from which it is said how much of the step the costs explain."""


@dataclass(frozen=True, slots=True)
class OnFittedCosts:
    """What would help a measured run: changes on costs fitted to it, and the run's own order on them."""

    costs: FittedCosts
    now: Result
    remedies: Remedies


def on_fitted_costs(timeline: Timeline, settings: Settings, measured: Result, allowed: Allowed) -> OnFittedCosts | None:
    """Simulate what would help a measured run, on the times of its ops. None if its order cannot be simulated on them.

    Schedules with other numbers of stages get the times of the measured stages by depth: two that a stage replaces are
    added, and one that becomes two is divided.
    """
    fitted, order = _fitted(timeline, settings), timed_only(timeline).schedule
    try:
        now = simulated(order, fitted)
    except PipeplanError:
        return None
    tried = remedies(order, fitted, now, allowed, for_stages=lambda stages: _divided(fitted, order.stages, stages))
    error = now.makespan / measured.makespan - 1 if measured.makespan else 0.0
    times = Times.of((now.makespan, measured.makespan), measured.time_unit)
    halves = "" if order.has(Kind.W) else "; each half of a backward is assumed to take half of it"
    unseen = _are_unseen(order, fitted)
    pairs = "; pairs of stages that never ran are assumed to save the mean share of the others" if unseen else ""
    sentence = (
        "What would help is simulated on costs fitted to this run: the times of its ops by stage and kind, of its transfers "
        f"and gaps{halves}{pairs}. On them its own order takes {times.text(now.makespan)} "
        f"({change(error)} against measured)."
    )
    if error < -UNEXPLAINED:
        sentence += " The rest is waiting beyond these times, such as slow messages: 'pipeplan diff PLAN RUN' finds it."
    return OnFittedCosts(FittedCosts(makespan=now.makespan, error=error, sentence=sentence), now, tried)


def _fitted(timeline: Timeline, settings: Settings) -> Settings:
    """Return the settings with the times of a measured timeline: medians as ``profile --from`` takes them, else means.

    Where pairs have a table of times, these are means, too.
    """
    means = settings_measured(timeline, settings)
    fit = service("training", "settings_of_timeline")
    if fit is None or _is_table(means.overlap_times):
        return means
    times: Settings = fit(timeline)
    return replace(settings, **{name: getattr(times, name) for name in _TIMES})


def _are_unseen(order: Schedule, fitted: Settings) -> bool:
    """Return True if the table of the times of pairs has pairs of stages that the order does not run."""
    forward, backward = (order.columns.stage[ops].tolist() for ops in order.pairs)
    return _is_table(fitted.overlap_times) and len({*zip(forward, backward, strict=True)}) < order.stages**2


def _is_table(value: Any) -> bool:
    return isinstance(value, tuple) and isinstance(value[0], tuple)


_TIMES = (
    *(name for name in SETTINGS if name.endswith("_times")),
    *("p2p_time", "op_gap", "message_time", "time_unit"),
)
"""Settings that a measured timeline decides. The time that a step adds is not part of its timeline."""


def _divided(settings: Settings, stages: int, others: int) -> Settings:
    """Return the settings with lists for another number of stages, in proportion to the depth of the model.

    Of a table of pairs, those of a forward and a backward of one stage remain.
    """
    if others == stages:
        return settings
    lists: dict[str, tuple[float, ...]] = {
        setting.name: tuple(np.diag(value).tolist()) if _is_table(value) else value
        for setting in SETTINGS.values()
        if setting.kind in ("per_stage", "pair_times")
        and isinstance(value := getattr(settings, setting.name), tuple)
        and len(value) == stages
    }
    divided: dict[str, Any] = {name: _by_depth(value, others) for name, value in lists.items()}
    return replace(settings, **divided)


def _by_depth(values: tuple[float, ...], stages: int) -> tuple[float, ...]:
    total = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.interp(np.linspace(0.0, 1.0, stages + 1), np.linspace(0.0, 1.0, len(values) + 1), total)
    return tuple(np.diff(ends).tolist())
