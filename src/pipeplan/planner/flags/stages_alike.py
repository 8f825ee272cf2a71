"""What flags must say once for all stages where a plan says it stage by stage."""

from __future__ import annotations

from pipeplan.planner.configuration import Configuration
from pipeplan.workload import RECOMPUTE


def recomputed_anywhere(configuration: Configuration) -> tuple[str, ...]:
    """The modules that any stage computes again, in the order of their table: with them on all stages, every stage fits."""
    if configuration.recompute_by_stage is None:
        chosen = set(configuration.recompute)
    else:
        chosen = {module for stage in configuration.recompute_by_stage for module in stage}
    return ("full",) if "full" in chosen else tuple(module for module in RECOMPUTE if module in chosen)


def differs_by_stage(configuration: Configuration) -> bool:
    """Whether stages compute different modules again."""
    by_stage = configuration.recompute_by_stage
    return by_stage is not None and len({frozenset(stage) for stage in by_stage}) > 1


def by_stage_in_words(configuration: Configuration) -> str:
    """Runs of stages with what they compute again: ``0-3: full; 4-7: nothing``."""
    runs: list[tuple[int, int, tuple[str, ...]]] = []
    for stage, modules in enumerate(configuration.recompute_by_stage or ()):
        if runs and set(runs[-1][2]) == set(modules):
            runs[-1] = (runs[-1][0], stage, modules)
        else:
            runs.append((stage, stage, modules))
    return "; ".join(
        f"{first if first == last else f'{first}-{last}'}: {' '.join(modules) or 'nothing'}"
        for first, last, modules in runs
    )


def offloaded_anywhere(configuration: Configuration) -> float:
    """The largest share of its kept bytes that a stage moves to the host."""
    return (
        max(configuration.offload, default=0.0) if isinstance(configuration.offload, tuple) else configuration.offload
    )
