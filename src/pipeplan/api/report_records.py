"""Data of the pages of a comparison and a difference; types of the pages' scripts are generated from these records."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from pipeplan.api.differing.op_differences import RankDifference
from pipeplan.records import Record

Column = Annotated[str | list[float], Meta(extra_json_schema={"title": "Column"})]
"""Numbers as ``packed`` of ``pipeplan.drawing.html`` writes them."""


class RankCosts(Record, frozen=True, kw_only=True):
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
    """Data of the page of a comparison, beside its timelines."""

    ranks: int
    microbatches: int
    unit: Annotated[str, Meta(description="Unit of all times; may be empty.")]
    memory_unit: Literal["activations", "bytes"]
    limit: Annotated[
        float | None, Meta(description="Memory limit that the schedules were generated for, in ``memory_unit``.")
    ]
    costs: RankCosts
    rows: Annotated[tuple[ComparisonRow, ...], Meta(description="Schedules within the limit first, the fastest first.")]
    refused: tuple[RefusedRow, ...]
    notes: tuple[str, ...]
    changes: Annotated[tuple[str, ...], Meta(description="Sentences on what would change the fastest schedule.")]


class DifferenceRow(Record, frozen=True, kw_only=True):
    """Ops of one kind on one stage: texts of the table's cells, and the numbers behind them."""

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
    """Data of the page of a run and its plan, beside both timelines."""

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


Themes = Annotated[dict[str, Any], Meta(extra_json_schema={"title": 'TimelineData["themes"]'})]
Views = Annotated[
    tuple[str, ...], Meta(description="Timelines as ``archive.ts`` opens them, in the order of the rows.")
]


class ComparisonData(Record, frozen=True, kw_only=True):
    """Page of a comparison, as ``report_data`` of ``pipeplan.drawing.html`` writes it."""

    kind: Literal["comparison"]
    title: str
    facts: ComparisonFacts
    views: Views
    themes: Themes


class DifferenceData(Record, frozen=True, kw_only=True):
    """Page of a run and its plan, as ``report_data`` of ``pipeplan.drawing.html`` writes it."""

    kind: Literal["difference"]
    title: str
    facts: DifferenceFacts
    views: Views
    themes: Themes
