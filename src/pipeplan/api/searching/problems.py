"""From settings and the options of a search to the problem that is solved. Importing this loads the solver."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypedDict, Unpack, get_args

import numpy as np

from pipeplan.api.sources import DEFAULT_MICROBATCHES
from pipeplan.costs import Costs, Limits, Settings
from pipeplan.errors import CostError, InfeasibleError, InputError, PipeplanError, ShapeError, UnknownNameError
from pipeplan.model import Placement, require_flags, require_text, shortened
from pipeplan.solver import Choices, Jitter, Objective, Problem, SlowRank, Variation

DEFAULT_CHUNKS = {"linear": 1, "loop": 2, "v": 2, "wave": 4, "bidirectional": 1, "bidirectional-v": 2}
"""The placements that are searched by name, and their default chunks: of each copy, where there are two."""

FIXED_CHUNKS = {"linear", "v", "bidirectional", "bidirectional-v"}
"""Those that have no other number of chunks."""

AUTO = "auto"
"""Every placement of ``DEFAULT_CHUNKS`` that can win."""

_LONGEST_PLACEMENT = 200_000
"""Letters: the rank of each of ten thousands of stages."""

Names = str | Iterable[str]
"""Names, or one text with commas between them."""


class Asked(TypedDict, total=False):
    """What is searched for, beside the settings."""

    placement: str
    objective: Objective
    full_backward: bool
    decide: Names
    leave: Names
    jitter: float | None
    slow_rank: float | None


def problem_of(
    settings: Settings,
    *,
    placement: str = "linear",
    objective: Objective = "makespan",
    full_backward: bool = False,
    decide: Names = (),
    leave: Names = (),
    jitter: float | None = None,
    slow_rank: float | None = None,
) -> Problem:
    """The problem that is solved. Raises what :func:`pipeplan.search` does."""
    require_text(placement, "placement", longest=_LONGEST_PLACEMENT, field="placement")
    if str(objective) not in get_args(Objective):
        raise UnknownNameError("objective", str(objective), get_args(Objective), field="objective")
    require_flags(full_backward=full_backward)
    choices = choices_of(decide, leave, full_backward=full_backward)
    _require_undecided(settings, choices)
    placed = placement_named(placement, settings)
    costs = settings.costs(placed)
    _require_times(costs, choices, names_of(decide))
    return Problem(
        placed,
        DEFAULT_MICROBATCHES if settings.microbatches is None else settings.microbatches,
        costs,
        settings.limits(placed),
        objective=objective,
        choices=choices,
        communication=settings.communication,
        slices=settings.slices or 1,
        variation=_variation(jitter, slow_rank),
    )


def problems_of(settings: Settings, **options: Unpack[Asked]) -> list[Problem]:
    """Return the problem of each placement that is searched: one where a placement is named, else those that can be.

    As in a comparison, ``chunks`` is for the placements that can have several numbers of chunks (``loop``, ``wave``); the
    others keep theirs. Stages and ranks together leave the placements of so many stages. A placement is left out that the
    microbatches, a list of costs per stage or the memory limit rule out, and one that holds the model twice unless the
    memory limit counts its second copy of the parameters.

    Raises what :func:`pipeplan.search` does; where every placement is ruled out, for the one that comes the nearest.
    """
    if options.get("placement", AUTO) != AUTO:
        return [problem_of(settings, **options)]
    problems: list[Problem] = []
    refused: list[tuple[float, PipeplanError]] = []
    for name in DEFAULT_CHUNKS:
        there = _settings_of_placement(name, settings)
        if there is None:
            continue
        try:
            problem = problem_of(there, **(options | {"placement": name}))
            known = {each.placement.rank_of for each in problems}
            counted = problem.placement.copies == 1 or counts_parameters(problem)
            if counted and problem.placement.rank_of not in known:
                problems.append(problem)
        except InfeasibleError as error:
            refused.append((_least_limit(there, options | {"placement": name}), error))
        except (CostError, ShapeError) as error:
            refused.append((float("inf"), error))
    if problems:
        return problems
    if not refused:
        return [problem_of(settings, **(options | {"placement": "linear"}))]
    raise min(refused, key=lambda each: each[0])[1]


def counts_parameters(problem: Problem) -> bool:
    """Return whether the memory limit counts what parameters take, of each copy of the model."""
    limits = problem.limits
    return limits is not None and not limits.in_activations and bool(problem.costs.memory.static.any())


def _settings_of_placement(name: str, settings: Settings) -> Settings | None:
    """Return the settings with the ranks and chunks of a placement; None where stages and ranks rule it out."""
    chunks = DEFAULT_CHUNKS[name] if name in FIXED_CHUNKS or settings.chunks is None else settings.chunks
    if settings.stages is None or settings.ranks is None:
        ranks = settings.pipeline_ranks(settings.chunks or 1)
        return replace(settings, ranks=ranks, chunks=chunks, stages=None)
    if name not in FIXED_CHUNKS and settings.chunks is None:
        chunks = settings.stages // settings.ranks
    return replace(settings, chunks=chunks) if chunks * settings.ranks == settings.stages else None


def _least_limit(settings: Settings, options: Asked) -> float:
    """Return the least limit for all ranks under which a placement has schedules."""
    limits = settings.limits(placement_named(options["placement"], settings))
    assert limits is not None
    free = problem_of(replace(settings, memory_limit=None), **options)
    unlimited = Limits(np.full(len(limits.values), np.inf), limits.in_activations)
    return float(replace(free, limits=unlimited).least_limit.max())


def names_of(given: Names) -> list[str]:
    """Names, given as several or as one text with commas between them. Raises InputError for what is no text."""
    texts = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    for text in texts:
        require_text(text, "what a search decides or leaves", field="decide")
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def choices_of(decide: Names, leave: Names, *, full_backward: bool = False) -> Choices:
    """What the search decides.

    Raises
    ------
    UnknownNameError
        For a name that is no choice.
    InputError
        For a name in both, and for full backwards where the search is to decide which are split.
    """
    decided, left = names_of(decide), names_of(leave)
    if full_backward and "split" in decided:
        raise InputError(
            "full backwards leave no backward to split: take full_backward or decide split, not both",
            field="full_backward",
        )
    return Choices.of(decided, [*left, "split"] if full_backward else left)


def _require_undecided(settings: Settings, choices: Choices) -> None:
    """What is recomputed or offloaded is decided by the search or not done at all."""
    for name in ("recompute", "offload"):
        fixed = getattr(settings, name)
        if fixed in ("none", ()):
            continue
        text = fixed if isinstance(fixed, str) else ",".join(map(str, fixed))
        if name in choices:
            raise InputError(
                f"{name} {text} says what the search is to decide: give {name} or decide {name}, not both", field=name
            )
        raise InputError(
            f"a search keeps every activation or decides itself what to {name}: in place of {name} {text} decide {name}",
            field=name,
        )


def _require_times(costs: Costs, choices: Choices, decided: list[str]) -> None:
    """What is decided takes a known time."""
    if choices.offload and costs.offload is None:
        raise InputError(
            "a search may offload only where a copy to the host takes a known time: give offload_times, or "
            "offload_bandwidth and activation_bytes",
            field="offload_bandwidth",
        )
    if "overlap" in decided and costs.overlap is None:
        raise InputError(
            "overlapping gains nothing where a pair takes as long as its two ops: give overlap_times",
            field="overlap_times",
        )


def _variation(jitter: float | None, slow_rank: float | None) -> Variation | None:
    if jitter is not None and slow_rank is not None:
        raise InputError(
            "a search is for jitter or for a slow rank: give one of them, and judge what it finds by the other",
            field="slow_rank",
        )
    if slow_rank is not None:
        return SlowRank(slow_rank)
    return None if jitter is None else Jitter(jitter)


def placement_named(name: str, settings: Settings) -> Placement:
    """The placement of a name, with the ranks and chunks of the settings, or of a list of ranks.

    Raises
    ------
    UnknownNameError
        For an unknown name.
    ShapeError
        For ranks, chunks and stages that contradict each other or the name.
    """
    if "," in name:
        return _custom_placement(name, settings)
    if name not in DEFAULT_CHUNKS:
        raise UnknownNameError("placement", name, DEFAULT_CHUNKS)
    chunks = settings.chunks or DEFAULT_CHUNKS[name]
    if name in FIXED_CHUNKS and chunks != DEFAULT_CHUNKS[name]:
        raise ShapeError(
            f"a {name} placement has {DEFAULT_CHUNKS[name]} chunk(s) a rank, not {chunks}: "
            f"take placement {_fitting(chunks, two_copies=name.startswith('bidirectional'))}",
            field="chunks",
        )
    return Placement.called(name, settings.pipeline_ranks(chunks), chunks)


def _fitting(chunks: int, *, two_copies: bool) -> str:
    """Which placements have so many chunks."""
    if two_copies and chunks <= 2:
        return "bidirectional" if chunks == 1 else "bidirectional-v"
    return "linear" if chunks == 1 else "loop" if chunks % 2 else "v or loop" if chunks == 2 else "wave or loop"


def _custom_placement(text: str, settings: Settings) -> Placement:
    try:
        placement = Placement.of(tuple(int(rank) for rank in text.split(",")))
    except ValueError:
        raise ShapeError(
            f"placement '{shortened(text, 60)}': write the rank of each stage, apart by commas, as in 0,1,1,0"
        ) from None
    for name in ("ranks", "stages"):
        if getattr(settings, name) not in (None, getattr(placement, name)):
            raise ShapeError(f"placement {text} has {getattr(placement, name)} {name}, not {getattr(settings, name)}")
    return placement
