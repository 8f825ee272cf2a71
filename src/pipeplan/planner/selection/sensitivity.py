"""Which input would change the choice: the best configurations estimated again with inputs that are not as assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeplan.planner.configuration import Configuration
from pipeplan.planner.estimated import Estimate
from pipeplan.planner.planned import Sensitivity
from pipeplan.planner.selection.trials import Change

CHANGES: tuple[Change, ...] = (
    Change(input="bandwidth between nodes", factor=0.5, bandwidth_between=True),
    Change(input="bandwidth between nodes", factor=2.0, bandwidth_between=True),
    Change(input="bandwidth inside nodes", factor=0.5, bandwidth_inside=True),
    Change(input="bandwidth inside nodes", factor=2.0, bandwidth_inside=True),
    Change(input="speed of matrix products", factor=0.8, kinds=("gemm", "grouped_gemm")),
    Change(input="speed of matrix products", factor=1.25, kinds=("gemm", "grouped_gemm")),
    Change(input="speed of attention", factor=0.8, kinds=("attention",)),
    Change(input="time of head and loss", factor=1.25, kinds=("head", "loss"), cost=True),
    Change(input="0.85 ms lost between ops", factor=1.0, op_gap=0.85e-3),
)
"""Factors about as large as predictions of these inputs are off: links reach half to all of their data sheet, products
differ by a fifth between versions of a library. What ops lose is what runs on A100 were fitted to
(:data:`~pipeplan.costs.MACHINES`); many chunks lose the most."""

LIMITS = (0.9, 1.1)
"""Factors on the memory limit."""

LEAST_GAIN = 0.002
"""By how much less another configuration must take to be called better: less is below what the model can tell."""


def of_change(change: Change, chosen: Estimate, others: Sequence[Estimate]) -> Sensitivity:
    """What a change makes of the choice.

    Parameters
    ----------
    chosen, others
        The choice, and those that fit beside it, all estimated with the change.
    """
    best = min((chosen, *others), key=lambda estimate: estimate.step_time * estimate.configuration.gpus)
    changes = best is not chosen and best.step_time < chosen.step_time * (1 - LEAST_GAIN)
    return Sensitivity(
        input=change.input,
        factor=change.factor,
        step_time=chosen.step_time,
        changes=changes,
        instead=_instead(best, chosen) if changes else "",
    )


def of_limit(factor: float, limit: float, chosen: Estimate, others: Sequence[Estimate]) -> Sensitivity:
    """What another memory limit makes of the choice.

    Parameters
    ----------
    limit
        That other limit; bytes.
    others
        All estimated configurations.
    """
    fitting = [estimate for estimate in others if estimate.peak_bytes <= limit]
    best = min(fitting, key=lambda estimate: estimate.step_time * estimate.configuration.gpus, default=None)
    fits = chosen.peak_bytes <= limit
    changes = not fits or (best is not None and best.step_time < chosen.step_time * (1 - LEAST_GAIN))
    instead = "nothing that was estimated fits" if best is None else _instead(best, chosen)
    return Sensitivity(
        input="memory limit",
        factor=factor,
        step_time=chosen.step_time,
        changes=changes,
        instead=instead if changes else "",
    )


def _instead(better: Estimate, chosen: Estimate) -> str:
    gain = 1 - better.step_time / chosen.step_time
    words = differences(better.configuration, chosen.configuration)
    return f"{words} (step {abs(gain):.1%} {'shorter' if gain > 0 else 'longer'})"


_DEGREES: Mapping[str, str] = {
    "tensor": "tp",
    "pipeline": "pp",
    "context": "cp",
    "data": "dp",
    "expert": "ep",
    "expert_tensor": "etp",
}


def differences(here: Configuration, there: Configuration) -> str:
    """In what a configuration differs from another, in a few words: ``tp2 cp1, zb-h1, microbatch 2``."""

    def differ(*names: str) -> bool:
        return any(getattr(here, name) != getattr(there, name) for name in names)

    said = [
        " ".join(f"{short}{getattr(here, name)}" for name, short in _DEGREES.items() if differ(name)),
        f"{here.schedule} v{here.chunks}" if differ("schedule", "chunks") else "",
        f"microbatch {here.microbatch_size}" if differ("microbatch_size") else "",
        recomputed_in_words(here) if differ("recompute", "recompute_by_stage") else "",
        _offloaded_in_words(here) if differ("offload") else "",
        f"ZeRO-{here.zero}" if differ("zero") else "",
    ]
    return ", ".join(filter(None, said)) or "another layout"


def recomputed_in_words(configuration: Configuration) -> str:
    """What a configuration computes again."""
    if configuration.recompute_by_stage is not None:
        return "recompute stage by stage"
    modules = "+".join(configuration.recompute)
    return f"recompute {modules}" if modules else "no recomputation"


def _offloaded_in_words(configuration: Configuration) -> str:
    moved = configuration.offload
    share = max(moved, default=0.0) if isinstance(moved, tuple) else moved
    return f"{share:.0%} offloaded" if share else "nothing offloaded"
