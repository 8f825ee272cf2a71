"""Comparison of the best configuration with others: neighbors, runners-up and why they lost, the front, changed inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from math import log2
from typing import Any

from msgspec.structs import asdict

from pipeplan.answers.parts import figure
from pipeplan.extensions.planning.choice.branching import Space, VariantGroup
from pipeplan.extensions.planning.choice.candidates import FRAME_FIELDS, VARIANT_FIELDS, as_configuration
from pipeplan.extensions.planning.choice.choice import INDISTINGUISHABLE
from pipeplan.extensions.planning.choice.describing import differences
from pipeplan.extensions.planning.choice.legality import excludes
from pipeplan.extensions.planning.choice.trials import ChangedInput
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.plan_records import Sensitivity
from pipeplan.extensions.planning.results import Estimate, StepTime
from pipeplan.foundation.files import GIBIBYTE
from pipeplan.foundation.records import titles_of

_TITLES = titles_of(StepTime)

MADE_UP = 0.3
"""Fraction of the largest loss from which on the second one, and a gain that offsets them, are mentioned."""

ALIKE = 0.001
"""Relative difference below which two steps are equally long."""


def lost_because(
    loser: Estimate, best: Estimate, memory_limit: float, deadline: float | None = None, *, complication: str = ""
) -> str:
    """Return what an estimate costs against the best, and why: memory, a missed deadline, or what takes longer.

    Estimates on different numbers of GPUs are compared in GPU seconds. ``complication`` says in what it is less simple than
    the best; it decides between estimates that are equally fast.
    """
    over = loser.peak_bytes - memory_limit
    if over > 0:
        faster = 1 - loser.step_time / best.step_time
        gain = f"; would be {_percent(faster)} faster" if faster > ALIKE else ""
        return f"{over / GIBIBYTE:.1f} GiB over the limit{gain}"
    if deadline is not None and loser.step_time > deadline:
        return f"misses the deadline of {deadline:g} s by {_percent(loser.step_time / deadline - 1)}"
    scale = loser.configuration.gpus / best.configuration.gpus
    gpus = f"{loser.configuration.gpus:,} GPUs instead of {best.configuration.gpus:,}" if scale != 1 else ""
    longer = scale * loser.step_time / best.step_time - 1
    if longer < -ALIKE:
        return gpus
    if longer <= ALIKE:
        memory = (loser.peak_bytes - best.peak_bytes) / GIBIBYTE
        more = f"it needs {memory:.1f} GiB more" if memory >= LEAST_GIB else ""
        rank = f"no less GPU time on {gpus}" if gpus else "no faster"
        return ", and ".join(filter(None, (rank, complication or more)))
    parts, chosen = asdict(loser.time), asdict(best.time)
    # The parts of the step that grew and shrank most, in seconds on as many GPUs.
    changes = {part: scale * parts[part] - chosen[part] for part in parts}
    worst, second, *_, gained = sorted(changes, key=lambda part: -changes[part])
    least = MADE_UP * changes[worst]
    shown = [worst, *(part for part in (second, gained) if abs(changes[part]) > least)]
    why = ", ".join(f"{changes[part]:+.{_digits(best)}f} s {_TITLES[part]}" for part in shown)
    return f"{_percent(longer)} {f'more GPU time on {gpus}' if gpus else 'slower'}: {why}"


LEAST_GIB = 0.05
"""Least difference of memory that tables show."""


def _digits(estimate: Estimate) -> int:
    """Return the decimals of parts of a step, as many as the step itself has."""
    return len(figure(estimate.step_time).partition(".")[2])


def _percent(share: float) -> str:
    return "0%" if not share else f"{share:.1%}"


MOST_NEIGHBOURS = 8
"""Maximum number of neighboring frames that are estimated."""

MOST_RUNNERS_UP = 8
"""Maximum number of runners-up that fit."""

MOST_OVER, NEAR = 2, 1.5
"""Maximum number of runners-up that are faster but do not fit, and how many times the limit they may need."""

_DEGREES = ("tensor", "pipeline", "context", "data", "expert", "expert_tensor", "microbatch_size")


def neighbours(space: Space, chosen: Configuration, limit: float) -> Iterator[Configuration]:
    """Yield configurations that differ from the chosen one in schedule, savings, or one doubled or halved degree.

    Of each other frame, the variant with the lowest bound that may fit is taken.
    """
    here = {name: getattr(chosen, name) for name in FRAME_FIELDS}
    # Frames within two doublings or halvings, the nearest first; the first one is the chosen frame itself.
    near = sorted(
        (frame for frame in space.frames() if _apart(frame, here) <= 2), key=lambda frame: _apart(frame, here)
    )
    for number, frame in enumerate(islice(near, MOST_NEIGHBOURS)):
        groups = [VariantGroup(space, frame, order) for order in space.laid_orders(frame)]
        yield from _best_of_each((group for group in groups if group.settle(limit)), by_schedule=number == 0)
    order = {name: getattr(chosen, name) for name in VARIANT_FIELDS}
    for saving in space.savings(here):
        few = not saving["offload"] and len(saving["recompute"]) < max(1, len(chosen.recompute))
        if few and not excludes(chosen.schedule, saving["recompute"]):
            yield as_configuration(space.request, {**here, **order, **saving})


def _apart(frame: dict[str, Any], here: dict[str, Any]) -> float:
    """Return the number of doublings and halvings between two frames; a large number if they differ in other fields."""
    if any(frame[name] != here[name] for name in ("software", "precision")):
        return 99.0
    steps: float = sum(abs(log2(frame[name] / here[name])) for name in _DEGREES)
    return steps + float(frame["zero"] != here["zero"]) + float(frame["replicate"] != here["replicate"])


def _best_of_each(groups: Iterable[VariantGroup], *, by_schedule: bool) -> Iterator[Configuration]:
    best: dict[str, VariantGroup] = {}
    for group in groups:
        kind = group.order["schedule"] if by_schedule else ""
        if kind not in best or group.seconds < best[kind].seconds:
            best[kind] = group
    return (group.configuration for group in best.values())


def runners_up(
    estimates: Sequence[Estimate], best: Estimate, value: Callable[[Estimate], float], limit: float
) -> list[Estimate]:
    """Return the best of every other family of degrees or schedule, and faster configurations that do not fit."""
    fitting = sorted((estimate for estimate in estimates if estimate.peak_bytes <= limit), key=value)
    chosen: list[Estimate] = []
    seen, schedules = {_split(best)}, {best.configuration.schedule}
    for estimate in fitting:
        new = _split(estimate) not in seen or estimate.configuration.schedule not in schedules
        if new and value(estimate) >= value(best) and len(chosen) < MOST_RUNNERS_UP:
            chosen.append(estimate)
            seen.add(_split(estimate))
            schedules.add(estimate.configuration.schedule)
    near = [estimate for estimate in estimates if limit < estimate.peak_bytes <= NEAR * limit]
    over = sorted((estimate for estimate in near if value(estimate) < value(best)), key=value)
    families: dict[tuple[int, ...], Estimate] = {}
    for estimate in over:
        families.setdefault(_split(estimate), estimate)
    return [*chosen, *islice(families.values(), MOST_OVER)]


def _split(estimate: Estimate) -> tuple[int, ...]:
    """Return the family of an estimate; numbers of microbatches and of context ranks alone do not make another family."""
    here = estimate.configuration
    return here.gpus, here.tensor, here.pipeline, min(here.context, 2), here.expert, here.expert_tensor


def front(estimates: Iterable[Estimate], value: Callable[[Estimate], float], limit: float) -> list[Estimate]:
    """Return the Pareto front of value and peak memory among the configurations that fit, the best value first."""
    best: list[Estimate] = []
    for estimate in sorted(
        (estimate for estimate in estimates if estimate.peak_bytes <= limit),
        key=lambda estimate: (value(estimate), estimate.peak_bytes),
    ):
        if not best or estimate.peak_bytes < best[-1].peak_bytes:
            best.append(estimate)
    return best


CHANGES: tuple[ChangedInput, ...] = (
    ChangedInput(input="bandwidth between nodes", factor=0.5, links=("between",)),
    ChangedInput(input="bandwidth between nodes", factor=2.0, links=("between",)),
    ChangedInput(input="bandwidth inside nodes", factor=0.5, links=("inside",)),
    ChangedInput(input="bandwidth inside nodes", factor=2.0, links=("inside",)),
    ChangedInput(input="speed of matrix products", factor=0.8, kinds=("gemm", "grouped_gemm")),
    ChangedInput(input="speed of matrix products", factor=1.25, kinds=("gemm", "grouped_gemm")),
    ChangedInput(input="attention speed", factor=0.8, kinds=("attention",)),
    ChangedInput(input="head and loss time", factor=1.25, kinds=("head", "loss"), cost=True),
    ChangedInput(input="0.85 ms overhead between ops", factor=1.0, op_gap=0.85e-3),
)
"""Changed inputs, by about as much as predictions of them are off: links reach half to all of their data sheet, and products
differ by a fifth between library versions. The overhead between ops is that fitted to runs on A100
(:data:`~pipeplan.costs.MACHINES`); configurations with many chunks lose most from it."""

LIMITS = (0.9, 1.1)
"""Factors on the memory limit."""


def of_change(change: ChangedInput, chosen: Estimate, others: Sequence[Estimate]) -> Sensitivity:
    """Return the effect of a changed input on the plan from estimates with it: the chosen one's, and others' that fit."""
    better = _better(chosen, others)
    return Sensitivity(
        input=change.input,
        factor=change.factor,
        step_time=chosen.step_time,
        changes=better is not None,
        instead="" if better is None else _instead(better, chosen),
        gain=0.0 if better is None else _gain(better, chosen),
    )


def of_limit(factor: float, limit: float, chosen: Estimate, others: Sequence[Estimate]) -> Sensitivity:
    """Return the effect of another memory limit in bytes on the plan, among all estimated configurations."""
    fitting = [estimate for estimate in others if estimate.peak_bytes <= limit]
    better = _better(chosen, fitting)
    if chosen.peak_bytes > limit:
        better = min(fitting, key=lambda estimate: estimate.gpu_seconds, default=None)
    fits = better is not None or chosen.peak_bytes <= limit
    return Sensitivity(
        input="memory limit",
        factor=factor,
        step_time=chosen.step_time,
        changes=better is not None or not fits,
        instead="no evaluated configuration fits" if not fits else "" if better is None else _instead(better, chosen),
        gain=0.0 if better is None else _gain(better, chosen),
    )


def _better(chosen: Estimate, others: Sequence[Estimate]) -> Estimate | None:
    """Return the best of other estimates if predictions can tell that it is better than the chosen one."""
    best = min((chosen, *others), key=lambda estimate: estimate.gpu_seconds)
    return best if best.step_time < chosen.step_time / (1 + INDISTINGUISHABLE) else None


def _gain(better: Estimate, chosen: Estimate) -> float:
    return 1 - better.step_time / chosen.step_time


def _instead(better: Estimate, chosen: Estimate) -> str:
    gain = _gain(better, chosen)
    words = differences(better.configuration, chosen.configuration)
    return f"{words} ({abs(gain):.1%} {'faster' if gain > 0 else 'slower'})"
