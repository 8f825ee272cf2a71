"""The one sentence that an explanation ends with: what to do next."""

from __future__ import annotations

from pipeplan.api.explaining.explanations import Explanation
from pipeplan.api.explaining.remedies import Remedy
from pipeplan.api.tables.parts import size
from pipeplan.readable import Times, change

_AT_HAND = ("schedule", "chunks", "recomputation", "offload")
"""What changes neither the model, nor the batch, nor the machine, and is within its memory."""


def advice(explanation: Explanation, times: Times) -> str:
    """What helps most of what is at hand, with its gain and its memory; else what the batch or the costs could do."""
    result, helping = explanation.result, explanation.helping
    at_hand = next((what for what in helping if what.kind in _AT_HAND), None)
    over = "" if result.fits else "This is over its memory limit. "
    if at_hand is not None:
        return f"{over}To do first: {_done(at_hand)}: {_gained(explanation, at_hand, times)}."
    if not result.fits:
        return f"{over}Nothing tried here is within it: raise it, or search under it with 'pipeplan search'."
    larger = next((what for what in helping if what.kind == "microbatches"), None)
    costs = next((what for what in helping if what.kind in ("costs", "memory")), None)
    bound = result.bound.value
    if result.gap:
        most = change(bound / result.makespan - 1)
        first = f"To do first: look for a better order with 'pipeplan search': the bound allows {times.text(bound)} ({most})"
        later = [] if larger is None else [_if_possible(explanation, larger)]
    else:
        first = f"No order of ops on this placement is shorter than {times.text(result.makespan)}"
        later = [_if_possible(explanation, what) for what in (larger, costs) if what is not None]
    return f"{first}{''.join(f'; {each}' for each in later)}."


def _done(what: Remedy) -> str:
    """What a person does."""
    if what.kind == "schedule":
        return f"train with {what.change}"
    if what.kind == "chunks":
        return f"put {what.change}"
    return "recompute all stages" if what.change == "all stages recomputed" else "recompute nothing"


def _gained(explanation: Explanation, what: Remedy, times: Times) -> str:
    now, before = explanation.result, explanation.result.makespan
    step = f"{times.text(what.makespan)} a step in place of {times.text(before)} ({change(what.makespan / before - 1)})"
    in_bytes = what.peak_bytes is not None and now.memory.peak_bytes is not None
    held = float((now.memory.peak_bytes if in_bytes else now.memory.peak_activation).max())  # type: ignore[union-attr]
    if abs(what.peak / held - 1) < 5e-4 if held else what.peak == held:
        return f"{step}, with the same memory"
    new, old = (size(what.peak), size(held)) if in_bytes else (f"{what.peak:.4g}", f"{held:.4g} activations")
    return f"{step}, with {'more' if what.peak > held else 'less'} memory: {new} in place of {old} on the fullest rank"


def _if_possible(explanation: Explanation, what: Remedy) -> str:
    """What is not at hand for everybody."""
    share = change(what.per_microbatch / explanation.per_microbatch - 1)
    each = Times.of([what.per_microbatch, explanation.per_microbatch], explanation.result.timeline.unit)
    words = f"with {what.change} a microbatch takes {each.text(what.per_microbatch)} in place of "
    return f"{words}{each.text(explanation.per_microbatch)} ({share})"
