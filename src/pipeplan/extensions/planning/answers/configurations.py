"""A configuration in a few words."""

from __future__ import annotations

from pipeplan.extensions.planning import Configuration

_DEGREES = (
    ("tensor", "tp"),
    ("pipeline", "pp"),
    ("context", "cp"),
    ("data", "dp"),
    ("expert", "ep"),
    ("expert_tensor", "etp"),
)
"""Degrees by name, with their usual abbreviations."""


def degrees_in_words(configuration: Configuration) -> str:
    """Return the degrees above one: ``tp8 pp4 dp2``."""
    degrees = [f"{short}{getattr(configuration, name)}" for name, short in _DEGREES if getattr(configuration, name) > 1]
    return " ".join(degrees) or "one GPU"


def zero_in_words(configuration: Configuration) -> str:
    """Return the ZeRO stage, and the copies of the sharded state if there are several: ``ZeRO-3 in 8 copies``."""
    return f"ZeRO-{configuration.zero}" + (
        f" in {configuration.replicate} copies" if configuration.replicate > 1 else ""
    )


def recompute_in_words(configuration: Configuration) -> str:
    """Return the recomputed modules in words: ``none``, ``full``, ``core_attn+mlp``, ``full on 3 of 8 stages``."""
    by_stage = configuration.recompute_by_stage
    if by_stage is None or len(set(by_stage)) == 1:
        modules = configuration.recompute if by_stage is None else by_stage[0]
        words = "+".join(modules) or "none"
    else:
        words = ", ".join(
            f"{'+'.join(modules)} on {by_stage.count(modules)} of {len(by_stage)} stages"
            for modules in dict.fromkeys(by_stage)
            if modules
        )
    moved = configuration.offload
    share = max(moved, default=0.0) if isinstance(moved, tuple) else moved
    moves = f"{share:.0%} offloaded"
    return words if not share else moves if words in ("", "none") else f"{words}, {moves}"


def in_words(configuration: Configuration) -> str:
    """Return a configuration in one line, with everything that distinguishes it within a plan."""
    chunks = f" v{configuration.chunks}" if configuration.chunks > 1 else ""
    schedule = f"{configuration.schedule}{chunks}, "
    if configuration.pipeline == 1:
        schedule = "no pipeline, " if configuration.gpus > 1 else ""
    recompute = recompute_in_words(configuration)
    again = "" if recompute == "none" else f", {recompute}" if recompute[0].isdigit() else f", recompute {recompute}"
    zero = f", {zero_in_words(configuration)}" if configuration.zero > 1 or configuration.replicate > 1 else ""
    adapters = f", LoRA of rank {configuration.lora_rank}" if configuration.lora_rank else ""
    packed = f", documents of {configuration.document}" if configuration.document else ""
    return (
        f"{degrees_in_words(configuration)}, {schedule}microbatch {configuration.microbatch_size}{again}{zero}"
        f"{adapters}{packed}"
    )


def layout_in_words(configuration: Configuration) -> str:
    """Return the layers of each stage, equal neighbours grouped: ``19, 6 x 20, 21``."""
    layers = configuration.layers
    if layers is None:
        return "even"
    runs: list[tuple[int, int]] = []
    for count in layers:
        runs[-1:] = [(runs[-1][0] + 1, count)] if runs and runs[-1][1] == count else [*runs[-1:], (1, count)]
    return ", ".join(f"{times} x {count}" if times > 1 else str(count) for times, count in runs)
