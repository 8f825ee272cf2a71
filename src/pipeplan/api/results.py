"""One schedule on one set of costs: its times, memory and bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, final

import numpy as np

from pipeplan.api.presentable import Presentable
from pipeplan.costs import Costs, Limits
from pipeplan.model import MemoryUse, Schedule, Timeline, counted, tolerances
from pipeplan.readable import percent, sizes_text, time_text
from pipeplan.simulation import Bound, Simulation, recomputed_stages, step_time

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeplan.api.searching.search_record import SearchRecord
    from pipeplan.drawing import View, Windows
    from pipeplan.formats import Content, Format
    from pipeplan.simulation import IdleTimes, LocatedWindow


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Result(Presentable):
    """One schedule on one set of costs.

    ``print()`` shows its table, a notebook its picture; ``to_frame()`` has a row an op.

    Attributes
    ----------
    timeline
        Start and end of every op, simulated or measured: ``timeline.source`` says which.
    costs
        What it was simulated on; of a timeline that came with its times, the means of its op times.
    memory
        What each rank holds after each op.
    bound
        The best lower bound proven on the makespan of any schedule of this placement, these costs and this memory limit.
    limits
        The memory limit of every rank, or None.
    warnings
        What the reader should know, a sentence each.
    notes
        What the table says beside its figures, a sentence each: the round numbers that stand for times nobody gave.
    search
        How a search found it; None where none did.
    """

    timeline: Timeline
    costs: Costs
    memory: MemoryUse
    bound: Bound
    limits: Limits | None = None
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    search: SearchRecord | None = None

    @property
    def schedule(self) -> Schedule:
        """Its ops in order, without times."""
        return self.timeline.schedule

    @property
    def name(self) -> str:
        """The schedule's name."""
        return self.schedule.name

    @property
    def makespan(self) -> float:
        """From 0 to the last op's end on any rank, in the unit of the costs."""
        return self.timeline.makespan

    def step_time(self, *, barrier: bool = True) -> float:
        """How long a step takes: the makespan, or without a barrier the longest span, and ``step_time`` behind it."""
        return step_time(self.timeline, self.costs, barrier=barrier)

    @property
    def gap(self) -> float | None:
        """``makespan / bound - 1``; None over the memory limit: the bound is for schedules within it."""
        return self.bound.gap_of(self.makespan) if self.fits else None

    @property
    def fits(self) -> bool:
        """Whether every rank stays within its memory limit; True where there is none."""
        return self.limits is None or over_limit(self.memory, self.limits) is None

    def idle_times(self) -> IdleTimes:
        """Every idle moment with its reason; a memory limit counts where it is one in activations, and a rank keeps it."""
        from pipeplan.simulation import idle_times

        limits = self.limits
        activations = None
        if limits is not None and limits.in_activations:
            kept = self.memory.peak_activation <= limits.values * (1 + tolerances.MEMORY)
            activations = np.where(kept, limits.values, np.inf)
        return idle_times(self.timeline, self.costs, limit=activations)

    def view(self, *, reasons: bool = False) -> View:
        """What a picture of it shows; with ``reasons``, also why each rank idles."""
        from pipeplan.drawing import view_of

        idle = self.idle_times() if reasons else None
        costs = self.costs.name if self.timeline.source == "simulated" else ""
        shown = view_of(
            self.timeline,
            self.memory,
            title=self.name,
            limit=self.limits,
            reasons=None if idle is None else idle.drawn,
            costs=costs,
        )
        return replace(shown, bound=self._bound_in_words(), windows=self._drawn_windows()) if reasons else shown

    @property
    def windows(self) -> tuple[LocatedWindow, ...]:
        """Where the windows are that the bound comes from, in which a rank must idle under its memory limit.

        Empty where the bound has another reason, or the limit is not kept.
        """
        from pipeplan.simulation import located_windows

        trips = self.bound.round_trips
        return () if trips is None or not self.fits else located_windows(self.timeline, trips, self.costs)

    def _drawn_windows(self) -> Windows | None:
        trips, found = self.bound.round_trips, self.windows
        if trips is None or not found:
            return None
        from pipeplan.drawing import Windows

        return Windows(
            lane=np.full(len(found), trips.rank),
            start=np.array([each.start for each in found]),
            end=np.array([each.end for each in found]),
            idle=np.array([each.idle for each in found]),
            least=np.array([each.window.idle for each in found]),
            kind=tuple(each.window.kind for each in found),
        )

    def _bound_in_words(self) -> str:
        if self.timeline.source != "simulated" or not self.fits:
            return ""
        within = "" if self.limits is None else " within the memory limit"
        least = time_text(self.bound.value, self.timeline.unit)
        alike = " that recomputes the same stages" if self.bound_is_of_recomputed else ""
        return f"no schedule{within}{alike} takes less than {least}: {self.bound.reason}"

    @property
    def bound_is_of_recomputed(self) -> bool:
        """Whether the bound holds for schedules that recompute the same stages alone; what a search proved holds for all."""
        return self.search is None and bool(recomputed_stages(self.schedule))

    def views(self) -> Sequence[View]:
        """The one view that its picture shows."""
        return [self.view()]

    def contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """Its timeline with all that is known beside it, its schedule, its costs, its picture."""
        from pipeplan.formats import Outcome

        return {
            "timeline": lambda _: Outcome(
                timeline=self.timeline, memory=self.memory, costs=self.costs, figures=self.to_dict()
            ),
            "schedule": lambda _: self.schedule,
            "settings": lambda _: self.schedule,
            "costs": lambda _: self.costs,
            "pictures": lambda chosen: pictured((self,), chosen),
        }

    def to_dict(self) -> dict[str, Any]:
        """The JSON of one result: of ``simulate --json``, of a ``.json`` file, and of the web API.

        Its schema is ``docs/schema/pipeplan-result.json``. Times are in ``time_unit``; ``spans``, ``work``, ``idle`` and the
        peaks have a value a rank.
        """
        from pipeplan.formats import placement_record

        schedule, timeline, bytes_ = self.schedule, self.timeline, self.memory.peak_bytes
        bubble = timeline.bubble
        record: dict[str, Any] = {
            "schedule": schedule.name,
            "ranks": schedule.ranks,
            "chunks": schedule.placement.chunks,
            "stages": schedule.stages,
            "microbatches": schedule.microbatches,
            "slices": schedule.slices,
            "placement": placement_record(schedule.placement),
            "ops": len(schedule),
            "time_unit": timeline.unit,
            "makespan": timeline.makespan,
            "spans": timeline.spans.tolist(),
            "work": timeline.work.tolist(),
            "idle": timeline.idle.tolist(),
            "bubble": {
                "idle_over_total": bubble.idle_over_total,
                "over_ideal": bubble.over_ideal,
                "span": bubble.span,
            },
            "peak_activation": self.memory.peak_activation.tolist(),
            "peak_bytes": None if bytes_ is None else bytes_.tolist(),
            "fits": self.fits,
            "lower_bound": self.bound.value,
            "bound_reason": self.bound.reason,
            "gap": self.gap,
            "warnings": list(self.warnings),
        }
        if self.costs.overhead.step_time:
            record["step"] = {"with_barrier": self.step_time(), "without_barrier": self.step_time(barrier=False)}
        return record if self.search is None else record | self.search.to_dict()

    def table(self) -> Iterable[RenderableType]:
        """Return what ``print()`` shows."""
        from pipeplan.api.tables.results import result_parts  # late: tables load rich

        return result_parts(self)

    def _rows(self) -> Mapping[str, Sequence[Any]]:
        from msgspec.structs import asdict

        from pipeplan.formats import timeline_columns

        columns: dict[str, Sequence[Any]] = asdict(timeline_columns(self.timeline))
        return columns

    def __repr__(self) -> str:
        verdict = "over the memory limit" if self.gap is None else f"gap to the bound {percent(self.gap)}"
        gain = "" if self.search is None else self.search.gain_in_short
        return (
            f"<Result {self.name}: makespan {time_text(self.makespan, self.timeline.unit)}, "
            f"bubble (idle / total) {percent(self.timeline.bubble.idle_over_total)}, "
            f"peak {self.memory.peak_activation.max():.4g} activations, {verdict}{gain}>"
        )


def result_of(
    simulation: Simulation,
    *,
    limits: Limits | None = None,
    warnings: Iterable[str] = (),
    notes: Iterable[str] = (),
    search: SearchRecord | None = None,
) -> Result:
    """The result of a simulation, with a warning where it is over its limits, and the best bound that is proven.

    What a search has proven of the makespan, or of the longest span, which is no longer than it, holds for both. One that
    was free to recompute or offload has proven it for schedules that do, of which the simulation knows nothing.
    """
    bounds = [] if search is not None and search.decided.frees_memory else [simulation.bound]
    if search is not None:
        bounds.append(search.nominal or search.bound)
    over = None if limits is None else over_limit(simulation.memory, limits)
    return Result(
        timeline=simulation.timeline,
        costs=simulation.costs,
        memory=simulation.memory,
        bound=max(bounds, key=attrgetter("value")),
        limits=limits,
        warnings=(*warnings, *([over] if over else [])),
        notes=tuple(notes),
        search=search,
    )


MOST_EXPLAINED = 200_000
"""Ops up to which an interactive timeline also says why ranks idle: of more, a page takes seconds longer to make."""


def pictured(results: Sequence[Result], chosen: Format) -> list[View]:
    """Return the views that a picture of results shows in a format, from top to bottom."""
    ops = sum(len(result.schedule) for result in results)
    return [result.view(reasons=chosen.explains and ops <= MOST_EXPLAINED) for result in results]


def over_limit(memory: MemoryUse, limits: Limits) -> str | None:
    """Which rank is furthest over its limit, what it needs and what the limit is, in words; None where all are within."""
    peaks = memory.peak_activation if limits.in_activations else memory.peak_bytes
    assert peaks is not None
    over = peaks > limits.values * (1 + tolerances.MEMORY)
    if not over.any():
        return None
    worst = int(np.argmax(peaks / limits.values))
    others = int(over.sum()) - 1
    more = f" ({counted(others, 'more rank')} {'is over its' if others == 1 else 'are over theirs'})" if others else ""
    needed, limit = (
        (f"{peaks[worst]:,.6g} activations", f"{limits.values[worst]:,.6g}")
        if limits.in_activations
        else sizes_text(float(peaks[worst]), float(limits.values[worst]))
    )
    return f"over the memory limit: rank {worst} needs {needed}, its limit is {limit}{more}"
