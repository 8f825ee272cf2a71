"""Several schedules on the same ranks, microbatches and costs: the record, its table and its page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Annotated, Any, Literal, final

import msgspec
import numpy as np
from msgspec import Meta
from msgspec.structs import asdict

from pipeplan.answers.answers import Listing
from pipeplan.answers.comparing.columns import (
    COLUMNS,
    DEFAULT_COLUMNS,
    BoundsByNeeds,
    LeastBound,
    columns_named,
    frame_of,
    rows_shown,
    table_of,
)
from pipeplan.answers.comparing.headline import headline_of
from pipeplan.answers.comparing.parting import Parting, parting_of, parting_parts
from pipeplan.answers.headlined import BRIEF, HeadlinedAnswer, ShownOptions, more_details, more_rows
from pipeplan.answers.parts import MOST_ROWS, line, notes, show
from pipeplan.answers.published import (
    Allowed,
    FasterWithMore,
    as_candidate,
    best_published,
    faster_with_more,
    missing,
)
from pipeplan.answers.simulating.result import Result, pictured, view_of_result
from pipeplan.answers.simulating.simulate import Summary
from pipeplan.answers.simulating.table import notes_shown
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.readable import Times
from pipeplan.foundation.records import Record, replaced
from pipeplan.model import NEEDS, Need, counted, one_line
from pipeplan.strategies import STRATEGIES, is_strategy, strategy

if TYPE_CHECKING:
    from pipeplan.answers.parts import Part
    from pipeplan.drawing import View
    from pipeplan.drawing.html import ReportPage
    from pipeplan.formats import Content, Format


class ComparisonCosts(Record, frozen=True, kw_only=True):
    """Costs of one microbatch per rank; means over the ranks unless they are ``even``."""

    forward: float
    backward: float
    backward_input: float
    backward_weight: float
    even: bool
    transfer: float
    activation: Annotated[float | None, Meta(description="Bytes, if known.")]


class ComparisonRow(Record, frozen=True, kw_only=True):
    """A schedule in the table of a comparison."""

    schedule: str
    placement: str
    needs: Annotated[tuple[Need, ...], Meta(description="What it needs of the model and the trainer.")]
    chunks: int
    makespan: float
    bubble: Annotated[float, Meta(description="Idle time / total time.")]
    peak: Annotated[float, Meta(description="Peak memory of the fullest rank, in ``memory_unit``.")]
    fullest: Annotated[int, Meta(description="The fullest rank.")]
    fits: Annotated[
        bool, Meta(description="Whether the schedule is within the memory limit that it was generated for.")
    ]
    bound: float
    bound_reason: str
    from_costs: Annotated[
        bool, Meta(description="Whether its rule uses costs and limits: another limit may give another schedule.")
    ]


class RefusedRow(Record, frozen=True, kw_only=True):
    """A schedule that is not available for the shape, and the reason."""

    schedule: str
    message: str


class ComparisonFacts(Record, frozen=True, kw_only=True):
    """Data of the page of a comparison, in addition to its timelines."""

    headline: Annotated[str, Meta(description="The answer in one sentence, as the page begins.")]
    ranks: int
    microbatches: int
    unit: Annotated[str, Meta(description="Unit of all times; may be empty.")]
    memory_unit: Literal["activations", "bytes"]
    limit: Annotated[
        float | None, Meta(description="Memory limit that the schedules were generated for, in ``memory_unit``.")
    ]
    costs: ComparisonCosts
    allowed: Annotated[tuple[Need, ...], Meta(description="What the best schedule may need.")]
    covers: Annotated[str, Meta(description="Schedules for which the least bound of those that need no more holds.")]
    rows: Annotated[tuple[ComparisonRow, ...], Meta(description="As in the comparison: the best one first.")]
    refused: tuple[RefusedRow, ...]
    notes: tuple[str, ...]


@final
class Comparison(HeadlinedAnswer, Listing[Result], frozen=True, kw_only=True, eq=False):
    """Several schedules on the same ranks, microbatches and costs.

    ``table["zbv"]`` is one result, ``table[0]`` the first, iteration gives all; ``to_frame()`` has a row per schedule.

    Attributes
    ----------
    results
        Results of the schedules that need nothing but what is allowed, then group by group; in each those within the memory
        limit first, the shortest makespan first.
    refused
        The schedules that this shape, these costs or this limit rule out, each with the reason.
    warnings, notes
        Warnings and assumptions of the schedules, each after the names that it applies to unless it applies to all.
    allowed
        What the best schedule may need (``result.needs``); schedules that need more come after the others.
    headline
        The best schedule in a sentence, and what would be faster with more.
    faster_with_more
        The best schedule of each group that needs more than is allowed, if it is faster than the best one; the fastest
        first.
    parting
        Where the orders of two schedules of one placement part; None otherwise.
    least
        The least lower bound of the schedules that need nothing but what is allowed, as ``least_bound`` in JSON.
    """

    _listed = "results"
    noun = "schedule of this comparison"

    headline: str
    results: tuple[Result, ...]
    allowed: tuple[Need, ...]
    faster_with_more: tuple[FasterWithMore, ...]
    refused: dict[str, str]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    parting: Parting | None
    least: LeastBound = msgspec.field(name="least_bound")

    @property
    def fits(self) -> bool:
        """True if any schedule is within the memory limit."""
        return any(result.fits for result in self.results)

    @property
    def best(self) -> Result:
        """The first one: the fastest within the limit of those that need nothing but what is allowed, if there is one."""
        return self.results[0]

    def _own_name(self, name: str) -> str:
        return strategy(name).name if is_strategy(name) else name

    def _named(self, name: str) -> Result:
        own_name = self._own_name(name)
        if own_name in self.refused:
            raise InputError(f"{own_name} is not possible here: {self.refused[own_name]}")
        return super()._named(name)

    def _summary_fields(self) -> str:
        return """results.schedule results.chunks results.time_unit results.makespan results.bubble.idle_over_total
        results.peak_activation results.peak_bytes results.fits results.gap results.needs faster_with_more
        least_bound.value parting.sentence warnings notes"""

    def summary(self) -> dict[str, Any]:
        """Return the parts of its JSON that answer the question, without warnings of limits, which ``fits`` shows."""
        from pipeplan.answers.summaries import summary_of

        document = self.to_dict() | {"warnings": list(_without_limits(self.warnings))}
        return summary_of(document, self._summary_fields())

    def _views(self) -> Sequence[View]:
        """Return the views of all results."""
        return [view_of_result(result) for result in self.results]

    def _contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """Return the record, the page, and the picture of all results."""
        return {
            "record": lambda _: self.to_dict(),
            "pictures": partial(pictured, self.results),
            "report": lambda chosen: comparison_report(self, pictured(self.results, chosen)),
        }

    def _below(self, shown: ShownOptions = BRIEF, columns: Collection[str] = DEFAULT_COLUMNS) -> Iterator[Part]:
        """Return a row per schedule with some of ``COLUMNS``, then the least bound and notes.

        Schedules over their memory limit are marked with ``!``. Raises UnknownNameError for an unknown column.
        """
        named, first = columns_named(columns), self.best
        shape = f"{counted(first.ranks, 'rank')}, {counted(first.microbatches, 'microbatch')}"
        yield line(f"{shape}, {first.costs.name}" if first.costs.name else shape)
        yield line()
        groups = [missing(result.needs, frozenset(self.allowed)) for result in self]
        places = rows_shown(groups, [result.fits for result in self], len(self) if shown.all else MOST_ROWS)
        yield table_of(self.results, named, groups, places)
        if not all(self[place].fits for place in places):
            yield line("! over the memory limit")
        yield from more_rows(len(self) - len(places), "more schedule")
        if self.parting is not None:
            starts = (start for rank in self.parting.ranks for start in rank.starts if start is not None)
            yield from parting_parts(self.parting, Times.of((first.makespan, *starts), first.time_unit), shown)
        yield from self._details(named, shown)

    def _details(self, columns: Collection[str], shown: ShownOptions) -> Iterator[Part]:
        """Return what the bound covers, which schedules are impossible, what columns mean, notes and warnings."""
        meanings = [COLUMNS[name].meaning for name in columns if COLUMNS[name].meaning]
        own = notes_shown(
            [text for text in self.best.notes if text not in _of_all(self.results) or len(self) == 1], shown
        )
        of_best = f"{self.best.name}: " if len(self) > 1 else ""
        told = self.notes if shown.verbose else [f"{of_best}{text}" for text in own]
        if shown.verbose:
            yield line()
            yield line(self.least.sentence)
            if self.refused:
                yield line()
                yield line("not possible here:")
            for name, reason in self.refused.items():
                yield line(f"{name}: {_first_line(name, reason)}", indent=2)
            yield line()
            yield from ([line("; ".join(meanings) + ".")] if meanings else [])
        yield from notes(told)
        yield from notes(_without_limits(self.warnings))
        impossible = [f"{counted(len(self.refused), 'schedule')} not possible here"] if self.refused else []
        further = len(self.notes) - len(told)
        assumptions = [counted(further, "further note")] if further > 0 else []
        meant = ["what the columns mean"] if meanings else []
        yield from more_details(["what the bound covers", *impossible, *meant, *assumptions], shown)

    def print(self, columns: Collection[str] = DEFAULT_COLUMNS, *, all: bool = False, verbose: bool = False) -> None:
        """Print the table that the command prints, with some of ``COLUMNS``; with ``all``, all schedules."""
        shown = ShownOptions(all=all, verbose=verbose)
        show(line(self.headline, "bold"), *self._below(shown, columns))

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: the table, and the pictures of the first schedules."""
        from pipeplan.answers.parts import html
        from pipeplan.drawing.static import html_of

        headline = f"<p><strong>{escape(one_line(self.headline))}</strong></p>"
        pictures = html_of([view_of_result(result) for result in self.results[:MOST_ROWS]])
        return f"{headline}{html(*self._below())}{pictures}"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [{"schedule": result.name} | asdict(Summary.of(result)) | frame_of(result) for result in self.results]

    def __repr__(self) -> str:
        names = ", ".join(result.name for result in self.results[:MOST_ROWS])
        more = f" and {len(self) - MOST_ROWS} more" if len(self) > MOST_ROWS else ""
        return f"<Comparison: {self.headline}; of {names}{more}>"


def comparison_of_results(
    results: Sequence[Result],
    allowed: Allowed,
    *,
    refused: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> Comparison:
    """Return the comparison of results, which are sorted as :func:`pipeplan.answers.published.rank` does."""
    candidates = [as_candidate(result) for result in results]
    best = best_published(candidates, allowed, lambda candidate: candidate)
    faster = faster_with_more(candidates, allowed, None if best is None else best.value)
    bounds = BoundsByNeeds(results, allowed)
    parting = parting_of(results, numbered([result.name for result in results]))
    return Comparison(
        headline=headline_of(results, allowed, faster, bounds.gap(results[0]), parting),
        results=tuple(replaced(result, least_gap=bounds.gap(result)) for result in results),
        allowed=tuple(need for need in NEEDS if need in allowed),
        faster_with_more=faster,
        refused=dict(refused or {}),
        warnings=_by_text(results, lambda result: result.warnings),
        notes=(*notes, *_by_text(results, lambda result: result.notes)),
        parting=parting,
        least=bounds.record(),
    )


def _of_all(results: Sequence[Result]) -> frozenset[str]:
    """Return the notes that every result has."""
    return frozenset.intersection(*(frozenset(result.notes) for result in results))


def _by_text(results: Sequence[Result], texts_of: Callable[[Result], Iterable[str]]) -> tuple[str, ...]:
    by_text: dict[str, list[str]] = {}
    for result in results:
        for text in texts_of(result):
            by_text.setdefault(text, []).append(result.name)
    return tuple(
        text if len(names) == len(results) > 1 else f"{', '.join(names)}: {text}" for text, names in by_text.items()
    )


def _without_limits(warnings: Iterable[str]) -> Iterator[str]:
    """Return the warnings without those of memory limits, which tables and pages show as marks."""
    return (text for text in warnings if "over the memory limit: " not in text)


def _first_line(name: str, reason: str) -> str:
    return reason.splitlines()[0].removeprefix(f"{name}: ")


def comparison_report(comparison: Comparison, views: Sequence[View]) -> ReportPage:
    """Return the page of a comparison; ``views`` are those of its results, in their order."""
    from pipeplan.drawing.html import ReportPage

    best = comparison.best
    shape = f"{best.ranks} ranks, {best.microbatches} microbatches"
    names = f"{len(comparison)} schedules" if len(comparison) > 1 else one_line(best.name)
    return ReportPage(
        kind="comparison",
        title=f"{names} on {shape}",
        facts=comparison_facts(comparison).to_dict(),
        views=tuple(views),
    )


def comparison_facts(comparison: Comparison) -> ComparisonFacts:
    """Return the data of the page of a comparison: a row per schedule, the shape and costs they share, and notes."""
    best = comparison.best
    in_bytes = best.memory.peak_bytes is not None
    limits = best.limits
    names = numbered([one_line(result.name) for result in comparison])
    return ComparisonFacts(
        headline=comparison.headline,
        ranks=best.ranks,
        microbatches=best.microbatches,
        unit=best.time_unit,
        memory_unit="bytes" if in_bytes else "activations",
        limit=None if limits is None or limits.in_activations == in_bytes else float(limits.values.max()),
        costs=_costs(best),
        allowed=comparison.allowed,
        covers=comparison.least.covers,
        rows=tuple(_page_row(name, result, in_bytes) for name, result in zip(names, comparison, strict=True)),
        refused=tuple(
            RefusedRow(schedule=one_line(name), message=_first_line(name, reason))
            for name, reason in comparison.refused.items()
        ),
        notes=(*comparison.notes, *_without_limits(comparison.warnings)),
    )


def numbered(names: Sequence[str]) -> list[str]:
    """Return the names of schedules, with a number where a name repeats."""
    before = (names[:place].count(name) for place, name in enumerate(names))
    return [f"{name} ({count + 1})" if count else name for name, count in zip(names, before, strict=True)]


def _page_row(name: str, result: Result, in_bytes: bool) -> ComparisonRow:
    placement, memory = result.schedule.placement, result.memory
    peaks = memory.peak_bytes if in_bytes and memory.peak_bytes is not None else memory.peak_activation
    named = STRATEGIES.get(result.name)
    return ComparisonRow(
        schedule=name,
        placement=placement.name,
        needs=result.needs,
        chunks=placement.chunks,
        makespan=result.makespan,
        bubble=result.bubble.idle_over_total,
        peak=float(peaks.max()),
        fullest=int(np.argmax(peaks)),
        fits=result.fits,
        bound=result.lower_bound,
        bound_reason=result.bound_reason,
        from_costs=named is not None and named.looks_at_costs,
    )


def _costs(result: Result) -> ComparisonCosts:
    """Return mean costs of one microbatch per rank, which all schedules of a comparison share."""
    costs, ranks = result.costs, result.schedule.ranks
    times = {"forward": costs.forward, "backward_input": costs.backward_input, "backward_weight": costs.backward_weight}
    return ComparisonCosts(
        **{name: float(values.sum()) / ranks for name, values in times.items()},
        backward=float(costs.backward.sum()) / ranks,
        even=all(bool(np.allclose(values, values[0])) for values in (*times.values(), costs.backward)),
        transfer=costs.transfer.time(),
        activation=float(costs.memory.activation.sum()) / ranks if costs.memory.in_bytes else None,
    )
