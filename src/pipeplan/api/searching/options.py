"""The options of searches, fronts and steady states."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from pipeplan.api.arguments import ScheduleLike
from pipeplan.costs import COUNT, MOST_SECONDS, SEED, WORKERS, Options, Range, option
from pipeplan.errors import InputError
from pipeplan.solver import Jitter, Objective, SlowRank, Variation

AUTO = "auto"
"""Every placement that can win."""

Names = str | Iterable[str]
"""Names, or one text with commas between them."""


@dataclass(frozen=True, kw_only=True)
class EverySearchOptions(Options):
    """What searches and steady states have in common."""

    placement: str = option(
        AUTO, kind="text", title="Placement", group="search", longest=200_000,
        help="Placement to search: auto (every placement that can win, those that hold the model twice where the memory "
        "limit counts both copies' parameters or a start has one; of a steady state: linear), linear, loop, v, wave, "
        "bidirectional, bidirectional-v, or the rank of each stage: 0,1,1,0.",
    )  # fmt: skip
    seconds: float | None = option(
        kind="number", title="Seconds", group="search", help="Time budget in seconds; of a front for all its limits.",
        default="10; of a front 10 a limit", range=Range(0, most=MOST_SECONDS),
    )  # fmt: skip
    seed: int = option(
        0, kind="count", title="Seed", group="search", help="Seed of the random numbers.", range=SEED
    )  # fmt: skip
    workers: int | None = option(
        kind="count", title="Workers", group="search", default="as many as there are cores; 1 for a steady state",
        help="Threads, or processes for several searches.", range=WORKERS,
    )  # fmt: skip
    full_backward: bool = option(
        False, kind="flag", title="Full backward", group="search", help="Alias of leave=split: split no backward."
    )  # fmt: skip
    leave: Names = option(
        (), kind="names", title="Leave", group="search",
        help="What not to decide: split, overlap, weight-order; repeatable, or with commas.",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SteadyStateOptions(EverySearchOptions):
    """Options of a search for a steady state."""

    most: int = option(
        4, kind="count", title="Longest pattern", group="search", range=COUNT,
        help="Microbatches of each copy of the model in the longest pattern that is tried.",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ScheduleSearchOptions(EverySearchOptions):
    """What searches and fronts have in common."""

    objective: Objective = option(
        "makespan", kind="choice", title="Objective", group="search", choices=get_args(Objective),
        help="Objective to minimize: the makespan, or the longest rank's own span, with ops that start as soon as they can.",
    )  # fmt: skip
    evaluations: int | None = option(
        kind="count", title="Evaluations", group="search", range=Range(0, most=10**15),
        help="Budget in schedules evaluated: the same seed then gives the same answer.",
    )  # fmt: skip
    start: ScheduleLike | list[ScheduleLike] | tuple[ScheduleLike, ...] = option(
        (), kind="schedules", title="Start", group="search",
        help="Schedule to go on from, by name or file; repeatable. No answer is worse.",
    )  # fmt: skip
    dask: str | None = option(
        kind="text", title="Dask", group="search", longest=400,
        help="Address of a Dask scheduler, whose workers search.",
    )  # fmt: skip
    store: str | os.PathLike[str] | None = option(
        kind="file", title="Store", group="search",
        help="Checkpoint file of searches, or of a front's points; rerun the same command to resume.",
    )  # fmt: skip
    decide: Names = option(
        (), kind="names", title="Decide", group="search",
        help="What else to decide: recompute, offload; repeatable, or with commas.",
    )  # fmt: skip

    @property
    def variation(self) -> Variation | None:
        """What varies from step to step."""
        return None

    @property
    def kept_in(self) -> Path | None:
        """The checkpoint file."""
        return None if self.store is None else Path(self.store)


@dataclass(frozen=True, kw_only=True)
class SearchOptions(ScheduleSearchOptions):
    """Options of a search for a better schedule."""

    searches: int | None = option(
        kind="count", title="Searches", group="search", default="1; 8 with dask", range=Range(1, most=10_000),
        help="Independent searches, each with the whole budget and a seed of its own.",
    )  # fmt: skip
    rounds: int = option(
        1, kind="count", title="Rounds", group="search", range=Range(1, most=1_000),
        help="Parts of the searches: after each, all continue from the best schedule of any.",
    )  # fmt: skip
    jitter: float | None = option(
        kind="number", title="Jitter", group="search", range=Range(0, most=10),
        help="Minimize the 95th percentile when op times vary by this standard deviation, such as 0.05.",
    )  # fmt: skip
    slow_rank: float | None = option(
        kind="number", title="Slow rank", group="search", range=Range(0, most=10),
        help="Minimize the worst case when any one rank is slower by this share, such as 0.05.",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.jitter is not None and self.slow_rank is not None:
            raise InputError(
                "a search is for jitter or for a slow rank: give one of them, and judge what it finds by the other",
                field="slow_rank",
            )

    @property
    def variation(self) -> Variation | None:
        """What varies from step to step."""
        if self.slow_rank is not None:
            return SlowRank(self.slow_rank)
        return None if self.jitter is None else Jitter(self.jitter)


@dataclass(frozen=True, kw_only=True)
class ParetoOptions(ScheduleSearchOptions):
    """Options of a search under each of several memory limits."""

    points: int = option(
        8, kind="count", title="Points", group="search", range=Range(2, most=1_000),
        help="Approximate number of memory limits; the peaks of the best published schedules are among them.",
    )  # fmt: skip
