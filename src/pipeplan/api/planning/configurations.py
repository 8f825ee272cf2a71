"""A configuration in a few words, and as a record."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # What is in words must not load the planner.
    from pipeplan.planner import Configuration

_DEGREES = (
    ("tensor", "tp"),
    ("pipeline", "pp"),
    ("context", "cp"),
    ("data", "dp"),
    ("expert", "ep"),
    ("expert_tensor", "etp"),
)
"""Degrees by name, and what people call them."""


def degrees_in_words(configuration: Configuration) -> str:
    """The degrees that are more than one: ``tp8 pp4 dp2``."""
    said = [f"{short}{getattr(configuration, name)}" for name, short in _DEGREES if getattr(configuration, name) > 1]
    return " ".join(said) or "one GPU"


def recompute_in_words(configuration: Configuration) -> str:
    """What is computed again or moved to the host: ``none``, ``full``, ``core_attn+mlp``, ``full on 3 of 8 stages``."""
    by_stage = configuration.recompute_by_stage
    if by_stage is None or len(set(by_stage)) == 1:
        modules = configuration.recompute if by_stage is None else by_stage[0]
        said = "+".join(modules) or "none"
    else:
        said = ", ".join(
            f"{'+'.join(modules)} on {by_stage.count(modules)} of {len(by_stage)} stages"
            for modules in dict.fromkeys(by_stage)
            if modules
        )
    moved = configuration.offload
    share = max(moved, default=0.0) if isinstance(moved, tuple) else moved
    moves = f"{share:.0%} offloaded"
    return said if not share else moves if said in ("", "none") else f"{said}, {moves}"


def in_words(configuration: Configuration) -> str:
    """All that tells one configuration of a plan from another, in one line."""
    chunks = f" v{configuration.chunks}" if configuration.chunks > 1 else ""
    schedule = f"{configuration.schedule}{chunks}, " if configuration.pipeline > 1 else ""
    recompute = recompute_in_words(configuration)
    again = "" if recompute == "none" else f", {recompute}" if recompute[0].isdigit() else f", recompute {recompute}"
    zero = f", ZeRO-{configuration.zero}" if configuration.zero > 1 else ""
    return f"{degrees_in_words(configuration)}, {schedule}microbatch {configuration.microbatch_size}{again}{zero}"


def layout_in_words(configuration: Configuration) -> str:
    """Layers of each stage, equal ones in a row together: ``19, 6 x 20, 21``."""
    layers = configuration.layers
    if layers is None:
        return "even"
    runs: list[tuple[int, int]] = []
    for count in layers:
        runs[-1:] = [(runs[-1][0] + 1, count)] if runs and runs[-1][1] == count else [*runs[-1:], (1, count)]
    return ", ".join(f"{times} x {count}" if times > 1 else str(count) for times, count in runs)


def configuration_record(configuration: Configuration) -> dict[str, Any]:
    """By the names of its fields, with microbatches and GPUs, which follow from them."""
    derived = {"gpus": configuration.gpus, "microbatches": configuration.microbatches}
    return asdict(configuration) | derived
