"""Why a configuration lost against the one that was chosen, in one sentence with the numbers that decide."""

from __future__ import annotations

from pipeplan.files import GIBIBYTE
from pipeplan.planner.estimated import Estimate, StepTime

PARTS: dict[str, tuple[str, ...]] = {
    "computation": ("compute",),
    "recomputation": ("recompute",),
    "bubble": ("bubble",),
    "exposed tensor communication": ("tensor",),
    "exposed context communication": ("context",),
    "exposed expert communication": ("expert",),
    "gaps between ops": ("overhead",),
    "exposed data communication": ("data",),
    "optimizer": ("optimizer",),
}
"""Parts of a step's time in words, and the fields of :class:`StepTime` that they sum."""

MADE_UP = 0.3
"""Share of a loss from which on what makes up for it is named, too."""

ALIKE = 0.001
"""Relative difference of two steps that are equally long."""


def lost_because(loser: Estimate, best: Estimate, memory_limit: float, deadline: float | None = None) -> str:
    """One sentence: memory where it does not fit, the deadline it misses; else the part of the step that grew the most.

    Where the two run on different numbers of GPUs, seconds of one GPU are compared.
    """
    over = loser.peak_bytes - memory_limit
    if over > 0:
        faster = 1 - loser.step_time / best.step_time
        gain = f"; its step would be {_percent(faster)} shorter" if faster > ALIKE else ""
        return f"needs {loser.peak_bytes / GIBIBYTE:.1f} GiB, {over / GIBIBYTE:.1f} over the limit{gain}"
    if deadline is not None and loser.step_time > deadline:
        return f"its step is {_percent(loser.step_time / deadline - 1)} longer than the deadline of {deadline:g} s"
    scale = loser.configuration.gpus / best.configuration.gpus
    longer = scale * loser.step_time / best.step_time - 1
    if longer < -ALIKE:
        return f"its step takes {_percent(-longer)} less by this model, but more of what was asked for"
    parts = _by_part(loser.time)
    chosen = _by_part(best.time)
    worst = max(parts, key=lambda part: scale * parts[part] - chosen[part])
    here, there = parts[worst] / loser.step_time, chosen[worst] / best.step_time
    if longer <= ALIKE:
        memory = (loser.peak_bytes - best.peak_bytes) / GIBIBYTE
        return f"as fast within {ALIKE:.1%}, and {_more_or_less(memory)}"
    gpus = f" on {loser.configuration.gpus} GPUs" if scale != 1 else ""
    why = f"{_percent(here)} of it is {worst}, {_percent(there)} in the choice"
    if worst == "computation":
        why = f"computation takes {_percent(scale * parts[worst] / chosen[worst] - 1)} longer"
    return f"step {_percent(longer)} longer{gpus}: {why}{_made_up(parts, chosen, worst, scale)}"


def _made_up(parts: dict[str, float], chosen: dict[str, float], worst: str, scale: float) -> str:
    """What is shorter than in the choice, where it is a good part of what is longer."""
    best = min(parts, key=lambda part: scale * parts[part] - chosen[part])
    gain, loss = chosen[best] - scale * parts[best], scale * parts[worst] - chosen[worst]
    return f", more than it saves in {best}" if gain > MADE_UP * loss else ""


def _more_or_less(gibibytes: float) -> str:
    if abs(gibibytes) < 0.05:
        return "holds as much"
    return f"holds {abs(gibibytes):.1f} GiB {'more' if gibibytes > 0 else 'less'}"


def _by_part(time: StepTime) -> dict[str, float]:
    return {part: sum(getattr(time, name) for name in names) for part, names in PARTS.items()}


def _percent(share: float) -> str:
    return "none" if not share else f"{share:.1%}"
