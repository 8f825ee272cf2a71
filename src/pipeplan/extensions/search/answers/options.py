"""The options of searches and fronts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from pipeplan.answers.arguments import ScheduleLike
from pipeplan.answers.published import AllowOptions
from pipeplan.costs import MOST_SECONDS, SEED, WORKERS, Range, option
from pipeplan.model import Objective

AUTO = "auto"
"""Every placement that can win."""

LayoutChoice = Literal["auto"]
"""Values of the option ``layout``: the layers of each stage are searched."""

Names = str | Iterable[str]
"""Names, or one text with commas between them."""


@dataclass(frozen=True, kw_only=True)
class ScheduleSearchOptions(AllowOptions):
    """Options that searches and fronts share."""

    # A table, read by columns: formatted, it would have a line for every argument.
    # fmt: off
    placement: str = option(
        AUTO, kind="text", group="search", longest=200_000,
        help="Placement to search: auto (every placement that can win), linear, loop, v, wave, bidirectional, "
        "bidirectional-v, or the rank of each stage, such as 0,1,1,0. auto includes placements that hold the model twice if "
        "copies are allowed or a start has them.",
    )
    seconds: float | None = option(
        kind="number", group="search", unit="seconds",
        help="Time budget in seconds; for a Pareto front, of all its limits together.",
        default="10; for a Pareto front, 10 per limit", range=Range(0, most=MOST_SECONDS),
    )
    seed: int = option(
        0, kind="count", group="search", usual=False, help="Random seed.", range=SEED
    )
    workers: int | None = option(
        kind="count", group="search", usual=False, default="the number of cores",
        help="Number of threads.", range=WORKERS,
    )
    full_backward: bool = option(
        False, kind="flag", group="search", shell="none",
        help="Keep every backward pass whole; alias of leave=split.",
    )
    leave: Names = option(
        (), kind="names", group="search", usual=False,
        help="Choices to keep fixed: split, overlap, weight-order; repeatable or comma-separated.",
    )

    objective: Objective = option(
        "makespan", kind="choice", group="search", usual=False, choices=get_args(Objective),
        help="Objective to minimize: the makespan, or the longest span of a rank, with ops that start as soon as they can.",
    )
    evaluations: int | None = option(
        kind="count", group="search", usual=False, range=Range(0, most=10**15),
        help="Limit on evaluated schedules; the same seed then gives the same answer. Starts and published schedules "
        "are always evaluated.",
    )
    start: ScheduleLike | list[ScheduleLike] | tuple[ScheduleLike, ...] = option(
        (), kind="schedules", group="search",
        help="Schedule to start from, a name or a file; repeatable. The answer is never worse than it.",
    )
    decide: Names = option(
        (), kind="names", group="search", usual=False,
        help="Further choices to optimize: recompute, offload; repeatable or comma-separated.",
    )
    # fmt: on


@dataclass(frozen=True, kw_only=True)
class SearchOptions(ScheduleSearchOptions):
    """Options of a search for a better schedule."""

    layout: LayoutChoice | None = option(
        kind="choice",
        group="search",
        shell="none",
        choices=(AUTO,),
        help="auto: also search for the layers of each stage and the number of chunks, from the costs of each layer "
        "(layers); the same as layers_per_stage auto.",
        default="the layers per stage that are set",
    )


@dataclass(frozen=True, kw_only=True)
class ParetoOptions(ScheduleSearchOptions):
    """Options of a search under each of several memory limits."""

    points: int = option(
        8,
        kind="count",
        group="search",
        range=Range(2, most=1_000),
        help="Approximate number of memory limits to search under; the memory peaks of the best published schedules are "
        "among them.",
    )
