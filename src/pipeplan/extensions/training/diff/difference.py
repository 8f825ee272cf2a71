"""A planned timeline against a run of it: the record, its table and its page.

The error of the step time has two parts. The schedule is simulated again with every op taking its measured time: the
difference is what the *costs* explain. The rest is *waiting* that was not planned: slower messages, gaps between ops, ranks
that start late. The effects of two kinds of ops can hide each other, so they need not add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, final

import numpy as np
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray

from pipeplan.answers.answers import AnswerRecord
from pipeplan.answers.headlined import BRIEF, HeadlinedAnswer, ShownOptions, more_details, more_rows
from pipeplan.answers.parts import MOST_ROWS, Points, columns, line, notes
from pipeplan.drawing import Ratios, View, view_of
from pipeplan.extensions.training.diff.op_differences import (
    Departure,
    KindDifference,
    OpDifference,
    RankDifference,
    WholeKind,
    measured_over_planned,
    scale_of,
)
from pipeplan.foundation.readable import Times, change
from pipeplan.foundation.records import Evidence, Record
from pipeplan.model import Floats, Timeline, one_line

if TYPE_CHECKING:
    from pipeplan.answers.parts import Part
    from pipeplan.drawing.html import ReportPage
    from pipeplan.formats import Content, Format

KIND_WORDS = {
    "F": "forward",
    "B": "backward",
    "I": "backward for inputs",
    "W": "backward for weights",
    "R": "recompute",
    "F+B": "overlapped forward and backward",
}
"""Kinds of ops in words."""


LEGEND = "effect: what the step changes by if these ops alone take their measured times"
"""Below the table."""


Column = Annotated[str | list[float], Meta(extra_json_schema={"title": "Column"})]
"""Numbers as ``packed`` of ``pipeplan.drawing.html`` writes them."""


class DifferenceRow(Record, frozen=True, kw_only=True):
    """Ops of one kind on one stage: texts of the table's cells, and their numbers."""

    texts: tuple[str, ...]
    notation: Annotated[str, Meta(description="``3B``: finds the ops in the timeline.")]
    kind: str
    stage: int
    ops: int
    planned: float
    measured: float
    ratio: float | None
    effect: Annotated[float, Meta(description="Change of the step if only these ops take their measured times.")]


class DifferenceFacts(Record, frozen=True, kw_only=True):
    """Data of the page of a run and its plan, in addition to both timelines."""

    unit: str
    of: Annotated[str, Meta(description="The number of steps that the run is chosen from; empty for one.")]
    sentences: Annotated[tuple[str, ...], Meta(description="The result in sentences, the headline first.")]
    headings: Annotated[tuple[str, ...], Meta(description="Headings of the columns of ``texts``.")]
    legend: Annotated[str, Meta(description="Explanations below the table.")]
    rows: tuple[DifferenceRow, ...]
    ranks: tuple[RankDifference, ...]
    notes: tuple[str, ...]
    reach: Annotated[float, Meta(description="End of the colour scale of the ratios.")]
    ratios: Annotated[
        tuple[Column, Column],
        Meta(description="Measured / planned time of each op, in the order of the bars of either view."),
    ]


@final
class Diff(HeadlinedAnswer, frozen=True, kw_only=True, eq=False):
    """A planned timeline and a run of it.

    ``to_frame()`` has a row for each kind of op on each stage.

    Attributes
    ----------
    headline
        The answer in a sentence: the run's step time, its distance from the plan, and what causes most of it.
    schedule, unit
        The schedule's name, and the unit of all times, which is that of the run.
    error, relative_error, change
        Measured makespan minus the planned one; as a share of the measured one; as a share of the planned one.
    sentences, advice
        Result in words: the headline, causes of the difference, advice; the last ones alone, which ask for an action.
    from_costs, from_waiting
        The parts of the error that op times explain, and that waiting explains.
    path_messages, path_gaps
        On the critical path of the run: time between ops of different ranks, and between ops of one rank.
    planned_path_messages, planned_path_gaps
        The same of the plan.
    measured_of
        Steps and replicas of the run, in words; the measured timeline is the one of median length.
    notes
        Assumptions that the plan was made on, a sentence each.
    kinds
        The differences by kind and stage.
    whole_kinds, ranks, slowest
        Differences of each kind on all stages, of each rank, and of the ops that took the most beyond their plan.
    departure
        The first op at which the run departs from the planned order; None if it never does.
    planned_exposed, measured_exposed
        Time of all ranks in which ops communicate and do not compute, in the plan and in the run. None: it is not known;
        both are left out if neither is known to have any.
    """

    headline: str
    schedule: str
    unit: str
    planned_makespan: float
    measured_makespan: float
    error: float
    relative_error: float
    change: float
    sentences: tuple[str, ...]
    advice: tuple[str, ...]
    from_costs: float
    from_waiting: float
    path_messages: float
    path_gaps: float
    planned_path_messages: float
    planned_path_gaps: float
    measured_of: str
    notes: tuple[str, ...]
    kinds: tuple[KindDifference, ...]
    whole_kinds: tuple[WholeKind, ...]
    ranks: tuple[RankDifference, ...]
    slowest: tuple[OpDifference, ...]
    departure: Departure | None
    planned_exposed: float | UnsetType | None = UNSET
    measured_exposed: float | UnsetType | None = UNSET

    planned = Evidence[Timeline]()
    """The planned timeline of compute ops, in the unit of the run, in the order of its own schedule."""

    measured = Evidence[Timeline]()
    """The measured timeline of compute ops, in the order of its own schedule."""

    replanned = Evidence[Timeline]()
    """The schedule simulated with every op taking its planned time: the planned timeline, unless that was measured."""

    resimulated = Evidence[Timeline]()
    """The schedule simulated with every op taking its measured time."""

    match = Evidence[NDArray[np.intp]]()
    """Position in the run of each planned op, shape (ops,)."""

    measured_from = Evidence[str]()
    """The file or folder that the run was read from; empty if it was none."""

    calibration = Evidence[AnswerRecord | None]()
    """The calibration updated by the run; None without a configuration."""

    scale = Evidence[float]()
    """Factor on the times of a plan without a unit of time, which makes its ops take as long in sum as the run's."""

    @property
    def several(self) -> bool:
        """True if the measured timeline was chosen among several steps or replicas."""
        return bool(self.measured_of) and not self.measured_of.startswith("1 step, ")

    @cached_property
    def ratios(self) -> Floats:
        """Measured over planned time of each op, shape (ops,), in the planned timeline's order; 10 if none was planned."""
        measured = self.measured.end - self.measured.start
        return measured_over_planned(self.planned.end - self.planned.start, measured[self.match])

    @property
    def ratios_in_run(self) -> Floats:
        """The same in the order of the measured timeline."""
        ratios = np.empty_like(self.ratios)
        ratios[self.match] = self.ratios
        return ratios

    @property
    def ratio_limit(self) -> float:
        """A scale of colours for the ratios goes from ``1 / ratio_limit`` (shorter) over 1 to this."""
        return scale_of(self.ratios)

    def _views(self) -> list[View]:
        """Return the planned timeline above the measured one, with ops coloured by their ratios."""
        name = self.schedule or "schedule"
        ratios = Ratios(values=self.ratios_in_run, reach=self.ratio_limit)
        measured = view_of(self.measured, title=f"{name}, measured")
        return [view_of(self.planned, title=f"{name}, planned"), replace(measured, ratios=ratios)]

    def _contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """Return the record, the page, and the picture of plan and run."""
        return {
            "record": lambda _: self.to_dict(),
            "pictures": lambda _: self._views(),
            "report": lambda _: difference_report(self),
        }

    def _below(self, shown: ShownOptions = BRIEF) -> Iterator[Part]:
        """Return the times of the kinds of ops with the largest effects, and advice; with ``verbose``, all sentences."""
        yield line(f"{self.schedule or 'the schedule'}: planned against measured")
        if self.several:
            yield line(f"of {self.measured_of}, the one of median length")
        others = self.sentences[1:] if shown.verbose else (*exposed_in_words(self), *self.advice)
        yield Points(others) if others else line()
        largest = sorted(self.kinds, key=lambda kind: -abs(kind.effect))[:MOST_ROWS]
        listed = self.kinds if shown.all or len(self.kinds) <= MOST_ROWS else tuple(largest)
        first, _, _, *headings = headings_of(self)
        table = columns(first, *headings, padding=1)
        for (kind, stage, _, *figures), own in zip(rows_of(self), self.kinds, strict=True):
            if own in listed:
                table.add_row(f"{kind}, stage {stage}", *figures)
        yield table
        yield from more_rows(len(self.kinds) - len(listed), "further row")
        if shown.verbose:
            yield line(LEGEND)
        yield from notes(self.notes)
        yield from more_details(("the causes in sentences", "the order of the ops", "what the effect is"), shown)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [kind.to_dict() for kind in self.kinds]

    def __repr__(self) -> str:
        planned, measured, times = self.planned_makespan, self.measured_makespan, whole_times(self)
        name = self.schedule or "a schedule"
        return (
            f"<Diff of {name}: {times.text(measured)}, {change(self.change)} against the planned {times.text(planned)}>"
        )


def exposed_in_words(diff: Diff) -> Iterator[str]:
    """Yield a sentence on the communication that ops wait for; none if neither the plan nor the run is known to have any."""
    planned, measured = diff.planned_exposed, diff.measured_exposed
    if isinstance(planned, UnsetType) or isinstance(measured, UnsetType):
        return
    times = Times.of((time for time in (planned, measured) if time is not None), diff.unit)
    words = "Communication exposed in the ops of all ranks: "
    if planned is None:
        yield f"{words}{times.text(measured or 0.0)}; that of the plan is not known, because it has no segments."
    elif measured is None:
        unread = [str(rank.rank) for rank in diff.ranks if rank.exposed_measured is None]
        where = "it shows" if len(unread) == len(diff.ranks) else f"the trace of rank {', '.join(unread)} shows"
        unknown = f"that of the run is not known, because {where} no kernels that communicate in ops"
        yield f"{words}planned {times.text(planned)}; {unknown}."
    else:
        yield f"{words}{times.text(measured)}, planned {times.text(planned)}."


def headings_of(diff: Diff) -> tuple[str, ...]:
    """Return the headings of the columns of :func:`rows_of`, with the units of their numbers."""
    planned, effect = (f" ({times.unit})" if times.unit else "" for times in (op_times(diff), whole_times(diff)))
    return "kind", "stage", "ops", f"planned{planned}", "measured", "ratio", f"effect{effect}"


def rows_of(diff: Diff) -> list[tuple[str, ...]]:
    """Return a row of texts for each kind on each stage, in the order of ``found.kinds``."""
    ops, whole = op_times(diff), whole_times(diff)
    return [
        (
            KIND_WORDS[kind.kind],
            str(kind.stage),
            str(kind.ops),
            ops.number(kind.planned),
            ops.number(kind.measured),
            f"{kind.measured / kind.planned:.2f}" if kind.planned else "",
            plus_sign(kind.effect, whole) + whole.number(kind.effect),
        )
        for kind in diff.kinds
    ]


def plus_sign(value: float, times: Times) -> str:
    """Return the sign of a change, unless it rounds to zero."""
    return "+" if value > 0 and times.number(value) != times.number(0.0) else ""


def whole_times(diff: Diff) -> Times:
    """Return how times of the whole step are written."""
    return Times.of((diff.planned_makespan, diff.measured_makespan), diff.unit)


def op_times(diff: Diff) -> Times:
    """Return how times of ops are written."""
    return Times.of((time for kind in diff.kinds for time in (kind.planned, kind.measured)), diff.unit)


def difference_report(diff: Diff) -> ReportPage:
    """Return the page of a run and its plan: the plan's timeline above that of the run."""
    from pipeplan.drawing.html import ReportPage

    return ReportPage(
        kind="difference",
        title=f"{one_line(diff.schedule) or 'the schedule'}: planned against measured",
        facts=_page_facts(diff).to_dict(),
        views=tuple(diff._views()),
    )


def _page_facts(diff: Diff) -> DifferenceFacts:
    """Return the sentences and the table that the terminal shows, and the ratio of measured to planned time of each op."""
    from pipeplan.drawing.html import packed

    planned, measured = (packed(ratios.astype(np.float32)) for ratios in (diff.ratios, diff.ratios_in_run))
    return DifferenceFacts(
        unit=diff.unit,
        of=f"of {diff.measured_of}, the step of median length" if diff.several else "",
        sentences=tuple(diff.sentences),
        headings=headings_of(diff),
        legend=LEGEND,
        rows=tuple(
            DifferenceRow(
                texts=texts,
                notation=f"{kind.stage}{kind.kind}",
                kind=kind.kind,
                stage=kind.stage,
                ops=kind.ops,
                planned=kind.planned,
                measured=kind.measured,
                ratio=kind.measured / kind.planned if kind.planned else None,
                effect=kind.effect,
            )
            for kind, texts in zip(diff.kinds, rows_of(diff), strict=True)
        ),
        ranks=tuple(diff.ranks),
        notes=tuple(diff.notes),
        reach=diff.ratio_limit,
        ratios=(planned, measured),
    )
