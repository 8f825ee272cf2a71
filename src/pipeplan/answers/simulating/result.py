"""One schedule on one set of costs: its times, memory and bound, and their table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
from msgspec import UNSET, UnsetType

from pipeplan.answers.headlined import BRIEF, HeadlinedAnswer, ShownOptions
from pipeplan.answers.sharding import ShardingUsed
from pipeplan.answers.simulating.headline import headline_of, over_limit_in_words
from pipeplan.answers.simulating.record import OverLimitRecord, ResultRecord, StepRecord
from pipeplan.costs import Costs, Limits, Settings
from pipeplan.foundation.readable import time_text
from pipeplan.foundation.records import Evidence, holding
from pipeplan.model import MemoryUse, Schedule, Timeline, needs_of, shortened
from pipeplan.simulation import Bound, Simulation, recomputed_stages, step_time

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeplan.drawing import View, Windows
    from pipeplan.formats import Content, Format, Training
    from pipeplan.simulation import IdleTimes, LocatedWindow


SUMMARY_FIELDS = """schedule ranks chunks microbatches needs time_unit makespan bubble.idle_over_total peak_activation
peak_bytes fits over lower_bound gap warnings notes"""
"""Paths of the parts of a result's JSON that are in a summary."""


class SearchFigures(Protocol):
    """Part of a search's record that a result reads; the search defines the record, which has further figures."""

    @property
    def bound(self) -> Bound:
        """The best lower bound on the objective."""

    @property
    def frees_memory(self) -> bool:
        """True if the search was free to recompute or offload."""

    @property
    def leaves_out(self) -> str:
        """Schedules that its bound leaves out, such as ``without overlapped pairs``; empty if none."""

    @property
    def layers_per_stage(self) -> tuple[int, ...] | UnsetType:
        """Number of layers of each stage, if the search decided the layout."""


@final
class Result(ResultRecord, HeadlinedAnswer, frozen=True, kw_only=True, eq=False):
    """Figures of one schedule on one set of costs.

    ``print()`` shows its table, a notebook its picture; ``to_frame()`` has a row per op. Times are in ``time_unit``; lists
    have a number per rank. Its schema is ``docs/schema/pipeplan-result.json``.
    """

    timeline = Evidence[Timeline]()
    """Start and end of every op, simulated or measured: ``timeline.source`` says which."""

    costs = Evidence[Costs]()
    """Costs that it was simulated on; of a timeline that came with its times, the means of its op times."""

    memory = Evidence[MemoryUse]()
    """Memory of each rank after each op."""

    bound = Evidence[Bound]()
    """Best lower bound proven on the makespan of any schedule of this placement, these costs and this memory limit."""

    limits = Evidence[Limits | None]()
    """Memory limit of every rank, or None."""

    _settings = Evidence[Settings | None]()
    """Settings that it was simulated on; None if its costs come from elsewhere, such as a plan or a search."""

    search = Evidence[Any]()
    """Record of the search that found the schedule, which its JSON has as further keys; None without a search."""

    @property
    def peak(self) -> float:
        """Peak memory of the fullest rank: bytes if they are known, else activations."""
        return max(self.peak_activation if self.peak_bytes is None else self.peak_bytes)

    @property
    def schedule(self) -> Schedule:
        """Ops in order, without times."""
        return self.timeline.schedule

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain lists, strings and numbers, with the figures of its search if there was one."""
        search = vars(self).get("search")  # a result that was read from JSON has none
        return super().to_dict() | ({} if search is None else search.to_dict())

    def _summary_fields(self) -> str:
        search = vars(self).get("search")
        return SUMMARY_FIELDS if search is None else f"{SUMMARY_FIELDS} {search.summary_fields}"

    def _views(self) -> Sequence[View]:
        """Return the single view of its picture."""
        return [view_of_result(self)]

    def _trained(self, training: Training) -> Training:
        """Return settings of a trainer with what follows from those of the costs."""
        from pipeplan.answers.outputs import with_settings

        return training if self._settings is None else with_settings(training, self._settings, self.stages)

    def _contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """Return the timeline with its figures, the schedule, the costs and the picture."""
        from pipeplan.formats import TimelineContent

        return {
            "timeline": lambda _: TimelineContent(
                timeline=self.timeline, memory=self.memory, costs=self.costs, figures=self.to_dict()
            ),
            "schedule": lambda _: self.schedule,
            "settings": lambda _: self.schedule,
            "costs": lambda _: self.costs,
            "pictures": lambda chosen: pictured((self,), chosen),
        }

    def _below(self, shown: ShownOptions = BRIEF) -> Iterator[RenderableType]:
        """Return its shape, its figures, its ranks, warnings and notes; of a search, what it gained and how."""
        from pipeplan.answers.simulating.table import Basis, result_parts

        basis = Basis(self.schedule, self.costs, costs_name(self), self.limits, self._settings, self.search)
        return result_parts(self, basis, shown)

    def _rows(self) -> Mapping[str, Sequence[Any]]:
        from msgspec.structs import asdict as fields_of

        from pipeplan.formats import timeline_columns

        columns: dict[str, Sequence[Any]] = fields_of(timeline_columns(self.timeline))
        return columns


def result_of(
    simulation: Simulation,
    *,
    limits: Limits | None = None,
    warnings: Iterable[str] = (),
    notes: Iterable[str] = (),
    search: SearchFigures | None = None,
    settings: Settings | None = None,
    sharding: ShardingUsed | UnsetType = UNSET,
) -> Result:
    """Return the result of a simulation, with a warning where it is over its limits, and the best bound that is proven.

    A bound that a search has proven on the longest span also holds for the makespan, which is at least as long. A search
    that may recompute or offload, or decides the layout, has proven its bound for such schedules as well; the simulation's
    bound is not.
    """
    narrow = search is not None and (search.frees_memory or search.layers_per_stage is not UNSET)
    bounds = [] if narrow else [simulation.bound]
    if search is not None:
        bounds.append(search.bound)
    bound = max(bounds, key=attrgetter("value"))
    timeline, memory, costs = simulation.timeline, simulation.memory, simulation.costs
    schedule = timeline.schedule
    over = None if limits is None else over_limit(memory, limits)
    return holding(
        Result(
            headline=headline_of(timeline, bound, over, limits, search),
            name=schedule.name,
            ranks=schedule.ranks,
            chunks=schedule.placement.chunks,
            stages=schedule.stages,
            microbatches=schedule.microbatches,
            slices=schedule.slices,
            placement=schedule.placement.listed,
            needs=needs_of(schedule),
            ops=len(schedule),
            time_unit=timeline.unit,
            makespan=timeline.makespan,
            spans=timeline.spans.tolist(),
            work=timeline.work.tolist(),
            idle=timeline.idle.tolist(),
            bubble=timeline.bubble,
            peak_activation=memory.peak_activation.tolist(),
            peak_bytes=None if memory.peak_bytes is None else memory.peak_bytes.tolist(),
            fits=over is None,
            over=over,
            lower_bound=bound.value,
            bound_reason=bound.reason,
            bound_covers=_covered(schedule, limits, search),
            gap=bound.gap_of(timeline.makespan) if over is None else None,
            warnings=(*warnings, *([] if over is None else [over_limit_in_words(over)])),
            notes=tuple(notes),
            step=_step_record(timeline, costs),
            sharding=sharding,
            peak_parameter_bytes=UNSET if memory.peak_parameters is None else memory.peak_parameters.tolist(),
        ),
        timeline=timeline,
        costs=costs,
        memory=memory,
        bound=bound,
        limits=limits,
        search=search,
        _settings=settings,
    )


def view_of_result(result: Result, *, reasons: bool = False) -> View:
    """Return the view of a picture; with ``reasons``, also the causes of idle time."""
    from pipeplan.drawing import view_of

    costs = costs_name(result)
    layout = None if result.search is None else result.search.layers_per_stage
    if layout:  # neither None nor UNSET
        costs = ", ".join(filter(None, (costs, f"layers {shortened('+'.join(map(str, layout)), 60)}")))
    shown = view_of(
        result.timeline,
        result.memory,
        title=result.name,
        limit=result.limits,
        reasons=idle_times_of(result).drawn if reasons else None,
        costs=costs,
        segments=result.costs.segments if result.timeline.source == "simulated" else None,
    )
    return replace(shown, bound=_bound_in_words(result), windows=_drawn_windows(result)) if reasons else shown


def costs_name(result: Result) -> str:
    """Return the name of the costs of a simulation; empty for a measured timeline, which has its own times."""
    return result.costs.name if result.timeline.source == "simulated" else ""


def idle_times_of(result: Result) -> IdleTimes:
    """Return every idle moment with its reason; only a limit in activations that the rank keeps counts as a reason."""
    from pipeplan.simulation import idle_times

    limits = result.limits
    activations = None
    if limits is not None and limits.in_activations:
        activations = np.where(limits.exceeded(result.memory), np.inf, limits.values)
    return idle_times(result.timeline, result.costs, limit=activations)


def windows_of(result: Result) -> tuple[LocatedWindow, ...]:
    """Return the windows that the bound comes from, in which a rank must idle to stay within its memory limit.

    Empty if the bound has another reason, or the limit is not kept.
    """
    from pipeplan.simulation import located_windows

    trips = result.bound.round_trips
    return () if trips is None or not result.fits else located_windows(result.timeline, trips, result.costs)


def _drawn_windows(result: Result) -> Windows | None:
    trips, windows = result.bound.round_trips, windows_of(result)
    if trips is None or not windows:
        return None
    from pipeplan.drawing import Windows

    return Windows(
        lane=np.full(len(windows), trips.rank),
        start=np.array([window.start for window in windows]),
        end=np.array([window.end for window in windows]),
        idle=np.array([window.idle for window in windows]),
        least=np.array([window.least_idle for window in windows]),
        kind=tuple(window.kind for window in windows),
    )


def _bound_in_words(result: Result) -> str:
    if result.timeline.source != "simulated" or not result.fits:
        return ""
    least = time_text(result.bound.value, result.timeline.unit)
    return f"{no_schedule_covered(result)} takes less than {least}: {result.bound.reason}"


def no_schedule_covered(result: Result) -> str:
    """Return the subject of a sentence about the bound: ``no schedule on this placement, without slices,``."""
    return f"no schedule{result.bound_covers.removeprefix('schedules')},"


def bound_is_of_recomputed(result: Result) -> bool:
    """Return whether the bound only holds for schedules that recompute the same stages; that of a search holds for all."""
    return result.search is None and bool(recomputed_stages(result.schedule))


def _covered(schedule: Schedule, limits: Limits | None, search: SearchFigures | None) -> str:
    """Return for which schedules a lower bound holds."""
    layouts = search is not None and search.layers_per_stage is not UNSET
    narrow = search is None and bool(recomputed_stages(schedule))
    parts = [
        "schedules of any layout on these placements" if layouts else "schedules on this placement",
        "without slices" if schedule.slices == 1 else f"in {schedule.slices} slices",
        *(["recomputing the same stages"] if narrow else []),
        *([search.leaves_out] if search is not None and search.leaves_out else []),
        *([] if limits is None else ["within the memory limit"]),
    ]
    return ", ".join(parts)


def _step_record(timeline: Timeline, costs: Costs) -> StepRecord | UnsetType:
    if not costs.overhead.step_time:
        return UNSET
    return StepRecord(
        with_barrier=step_time(timeline, costs), without_barrier=step_time(timeline, costs, barrier=False)
    )


MOST_EXPLAINED = 200_000
"""Maximum number of ops of an interactive timeline with the causes of idle time; more would take seconds."""


def editable(result: Result, view: View) -> View:
    """Return the view of a result with the costs with which a page simulates other orders of its ops, if it can."""
    from pipeplan.answers.simulating.page_costs import page_costs_of

    return replace(view, order=page_costs_of(result.timeline, result.costs, result.memory, result.limits))


def pictured(results: Sequence[Result], chosen: Format) -> list[View]:
    """Return the views that a picture of results shows in a format, from top to bottom."""
    ops = sum(len(result.schedule) for result in results)
    views = [view_of_result(result, reasons=chosen.explains and ops <= MOST_EXPLAINED) for result in results]
    # An interactive page of one schedule can simulate other orders of its ops.
    return [editable(results[0], views[0])] if chosen.explains and len(views) == 1 else views


def over_limit(memory: MemoryUse, limits: Limits) -> OverLimitRecord | None:
    """Return which rank is furthest over its limit; None if all are within theirs."""
    over = limits.exceeded(memory)
    if not over.any():
        return None
    peaks = memory.peak_activation if limits.in_activations else memory.peak_bytes
    assert peaks is not None
    worst = int(np.argmax(peaks / limits.values))
    return OverLimitRecord(
        rank=worst,
        peak=float(peaks[worst]),
        limit=float(limits.values[worst]),
        unit="activations" if limits.in_activations else "bytes",
        others=int(over.sum()) - 1,
    )
