"""Several schedules on the same ranks, microbatches and costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Unpack, final

from pipeplan.api.arguments import Given, ScheduleLike, settings_of
from pipeplan.api.presentable import Presentable
from pipeplan.api.results import Result, pictured
from pipeplan.api.simulations import simulated
from pipeplan.api.sources import as_taken_by, label, opened, same_ranks
from pipeplan.costs import Settings
from pipeplan.errors import InputError, PipeplanError, UnknownNameError
from pipeplan.model import Schedule, Timeline, require_flags, shortened
from pipeplan.simulation import simulate as simulate_schedule
from pipeplan.strategies import STRATEGIES, is_strategy, strategy

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeplan.api.comparing.leads import Lead
    from pipeplan.drawing import View
    from pipeplan.formats import Content, Format


@dataclass(frozen=True, slots=True)
class Entrants:
    """The schedules of a comparison, which can be simulated again on other settings.

    Attributes
    ----------
    sources
        The schedules by the names of their results.
    settings
        Shape and costs.
    """

    sources: Mapping[str, str | Schedule | Timeline]
    settings: Settings

    def again(self, result: Result, settings: Settings) -> Result:
        """Simulate one of them on other settings. Raises what :func:`pipeplan.simulate` does."""
        source = self.sources[result.name]
        return simulated(source, settings_for(source, settings), called=result.name)

    def timed(self, result: Result, settings: Settings) -> float:
        """Return the makespan that the order of one of them has on other settings."""
        schedule, settings = result.schedule, settings_for(self.sources[result.name], settings)
        costs = settings.costs(schedule.placement)
        return simulate_schedule(schedule, costs, communication=settings.communication).timeline.makespan


@final
@dataclass(frozen=True, eq=False)
class Comparison(Presentable):
    """Several schedules on the same ranks, microbatches and costs.

    ``table["zbv"]`` is one result, ``table[0]`` the first, iteration gives all; ``to_frame()`` has a row a schedule.

    Attributes
    ----------
    results
        Those within the memory limit first, the shortest makespan first.
    refused
        The schedules that this shape, these costs or this limit rule out, each with the reason.
    leads
        The slower transfer and the smaller memory limits at which another schedule leads; empty unless requested.
    """

    results: tuple[Result, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    leads: tuple[Lead, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Every schedule's warnings, each behind its name; one that all share stands once."""
        return self._by_text(lambda result: result.warnings)

    def _by_text(self, said: Callable[[Result], Iterable[str]]) -> tuple[str, ...]:
        by_text: dict[str, list[str]] = {}
        for result in self.results:
            for text in said(result):
                by_text.setdefault(text, []).append(result.name)
        everyone = len(self.results)
        return tuple(
            text if len(names) == everyone > 1 else f"{', '.join(names)}: {text}" for text, names in by_text.items()
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What is assumed of the times, behind the names of the schedules that it is assumed of, where these are not all."""
        return self._by_text(lambda result: result.notes)

    @cached_property
    def least_bound(self) -> Result:
        """The result whose lower bound is the least: no schedule of any placement here can be shorter than that bound."""
        return min(self.results, key=lambda result: result.bound.value)

    def least_gap(self, result: Result) -> float | None:
        """How far a result is above the least bound, as a share of it; None over the memory limit."""
        return self.least_bound.bound.gap_of(result.makespan) if result.fits else None

    def least_bound_record(self) -> dict[str, Any]:
        """The least bound as JSON: its value and reason, and the placement that it is of."""
        least = self.least_bound
        placement = least.schedule.placement
        return {
            "value": least.bound.value,
            "reason": least.bound.reason,
            "placement": placement.name,
            "chunks": placement.chunks,
            "slices": least.schedule.slices,
            "recomputing": least.bound_is_of_recomputed,
        }

    @property
    def fits(self) -> bool:
        """Whether any schedule stays within the memory limit."""
        return any(result.fits for result in self.results)

    @property
    def best(self) -> Result:
        """The first one."""
        return self.results[0]

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __contains__(self, name: object) -> bool:
        return any(result.name == name for result in self.results)

    def __getitem__(self, name: str | int) -> Result:
        """The result of a schedule, by its name or an alias, or by its place: 0 is the first one.

        Raises
        ------
        IndexError
            For a place that is not here.
        UnknownNameError
            For a name that is not here; the message suggests the nearest one.
        InputError
            For a schedule that was refused, with the reason.
        """
        if not isinstance(name, str):
            if isinstance(name, bool) or not hasattr(name, "__index__"):
                raise InputError(f"a result is found by its name or its place, not by {shortened(repr(name), 60)}")
            return self.results[name]
        meant = strategy(name).name if is_strategy(name) else name
        found = next((result for result in self.results if result.name == meant), None)
        if found is not None:
            return found
        if meant in self.refused:
            raise InputError(f"{meant} is not possible here: {self.refused[meant]}")
        raise UnknownNameError("schedule of this comparison", name, [result.name for result in self.results])

    def views(self) -> Sequence[View]:
        """What a picture of all of them shows."""
        return [result.view() for result in self.results]

    def to_dict(self) -> dict[str, Any]:
        """``results`` as a list of the JSON of one result, ``refused`` by name, ``warnings``, and what the table says."""
        return {
            "results": [result.to_dict() for result in self.results],
            "refused": dict(self.refused),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "least_bound": self.least_bound_record(),
            "leads": [lead.to_dict() for lead in self.leads],
        }

    def contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """Its record, its page, and the picture of all results."""
        from pipeplan.api.comparing.reports import comparison_report

        return {
            "record": lambda _: self.to_dict(),
            "pictures": partial(pictured, self.results),
            "report": lambda chosen: comparison_report(self, pictured(self.results, chosen)),
        }

    def table(self) -> Iterable[RenderableType]:
        """Return what ``print()`` shows."""
        from pipeplan.api.tables.comparisons import comparison_parts  # late: tables load rich

        return comparison_parts(self)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {
                "schedule": result.name,
                "placement": result.schedule.placement.name,
                "chunks": result.schedule.placement.chunks,
                "makespan": result.makespan,
                "longest_span": result.timeline.longest_span,
                "idle_over_total": result.timeline.bubble.idle_over_total,
                "over_ideal": result.timeline.bubble.over_ideal,
                "span_bubble": result.timeline.bubble.span,
                "peak_activation": float(result.memory.peak_activation.max()),
                "peak_bytes": None if result.memory.peak_bytes is None else float(result.memory.peak_bytes.max()),
                "fits": result.fits,
                "lower_bound": result.bound.value,
                "gap": result.gap,
                "least_gap": self.least_gap(result),
            }
            for result in self.results
        ]

    def __repr__(self) -> str:
        lines = "".join(f"\n  {result!r}" for result in self.results)
        return f"<Comparison of {len(self.results)} schedules, {len(self.refused)} refused{lines}>"


def compare(*schedules: ScheduleLike, leads: bool = False, **settings: Unpack[Given]) -> Comparison:
    """Several schedules on the same ranks, microbatches and costs; or all that fit.

    Parameters
    ----------
    *schedules
        What :func:`pipeplan.simulate` takes; none: every strategy. Without ``ranks`` and ``microbatches`` they are those of
        the first schedule that is given as such, or as a file.
    leads
        Also find up to which transfer time the fastest schedule leads, and which schedule leads under smaller memory
        limits. This simulates the schedules many times over; the answer holds it as ``leads``.
    **settings
        Shape and costs. An option that a schedule does not have, such as ``chunks``, is left out for it.

    Raises
    ------
    InputError
        For what :func:`pipeplan.simulate` raises it, on the first of the schedules; for schedules of different ranks or
        microbatches; without schedules, if none fits.
    NegativeAnswer
        If there is no schedule under the memory limit.

    Examples
    --------
    >>> table = pipeplan.compare("1f1b", "zbv", ranks=4, microbatches=8)
    >>> table.best.name, table["1f1b"].makespan
    ('zbv', 33.0)
    """
    require_flags(leads=leads)
    return comparison_of(schedules, settings_of(settings), leads=leads)


def comparison_of(schedules: Sequence[ScheduleLike], settings: Settings, *, leads: bool = False) -> Comparison:
    """See :func:`compare`."""
    entrants, results, refused = _compared(schedules, settings)
    for error in refused.values():
        if not results or (schedules and isinstance(error, InputError)):
            raise error
    changes = _leads(entrants, results) if leads else ()
    return Comparison(tuple(results), {name: str(error) for name, error in refused.items()}, changes)


def _leads(entrants: Entrants, results: Sequence[Result]) -> tuple[Lead, ...]:
    """Return what would change which schedule leads; nothing where two of them have one name."""
    from pipeplan.api.comparing.leads import leads_of

    if len({result.name for result in results}) < len(results):
        return ()
    return leads_of(results, entrants.settings, entrants.again, entrants.timed)


def compared(sources: Iterable[ScheduleLike], settings: Settings) -> tuple[list[Result], dict[str, PipeplanError]]:
    """The results that can be had, the best first, and the error of every other schedule by its name.

    Parameters
    ----------
    sources
        As for :func:`compare`.
    settings
        Shape and costs.

    Raises
    ------
    InputError
        For a variant that none of the schedules has, and for ranks and stages that contradict each other.
    """
    _, results, refused = _compared(sources, settings)
    return results, refused


def _compared(
    sources: Iterable[ScheduleLike], settings: Settings
) -> tuple[Entrants, list[Result], dict[str, PipeplanError]]:
    settings = same_ranks(settings)
    found: list[tuple[str, str | Schedule | Timeline]] = []
    results: list[Result] = []
    refused: dict[str, PipeplanError] = {}
    for source in list(sources) or list(STRATEGIES):
        try:
            found.append((label(source), opened(source)))
        except PipeplanError as error:
            refused[label(source)] = error
    _require_variant([meant for _, meant in found], settings.variant)
    settings = with_shape_of([meant for _, meant in found], settings)
    meant: dict[str, str | Schedule | Timeline] = {}
    for name, each in found:
        try:
            results.append(simulated(each, settings_for(each, settings), called=name))
        except PipeplanError as error:
            refused[name] = error
        else:
            # By the name of the result, which may be another one: a file's schedule has its own.
            meant[results[-1].name] = each
    return Entrants(meant, settings), sorted(results, key=lambda result: (not result.fits, result.makespan)), refused


def _require_variant(found: Iterable[str | Schedule | Timeline], variant: str | None) -> None:
    """A schedule without this variant leaves it out, but one of them must have it."""
    if variant is None:
        return
    known = {each for name in found if isinstance(name, str) and is_strategy(name) for each in strategy(name).variants}
    if not known:
        raise InputError("none of these schedules has variants", field="variant")
    if variant not in known:
        raise UnknownNameError("variant", variant, known, field="variant")


def with_shape_of(found: Iterable[str | Schedule | Timeline], settings: Settings) -> Settings:
    """The settings with the ranks and microbatches of the first schedule that has its own, where none are given."""
    for meant in found:
        if not isinstance(meant, str):
            schedule = meant.schedule if isinstance(meant, Timeline) else meant
            ranks = schedule.ranks if settings.ranks is None else settings.ranks
            microbatches = schedule.microbatches if settings.microbatches is None else settings.microbatches
            return replace(settings, ranks=ranks, microbatches=microbatches)
    return settings


def settings_for(meant: str | Schedule | Timeline, settings: Settings) -> Settings:
    """The settings that a schedule has: one that is given as such has its own chunks, groups and slices."""
    if isinstance(meant, str):
        return as_taken_by(strategy(meant), settings)
    return settings.without("chunks", "group_size", "slices", "variant")
