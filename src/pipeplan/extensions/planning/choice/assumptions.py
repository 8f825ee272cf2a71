"""Assumptions that a prediction rests on: those whose opposite changes its time or memory, and how to say the opposite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import product

from pipeplan.extensions.planning.choice.legality import excludes, precisions_of
from pipeplan.extensions.planning.choice.trials import ChangedInput
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.estimates.estimating import estimate
from pipeplan.extensions.planning.estimates.memory_rules import software_with
from pipeplan.extensions.planning.estimates.properties import SEPARATOR
from pipeplan.extensions.planning.estimates.running import OVERLAPPED, may_hide
from pipeplan.extensions.planning.estimates.seconds import TimeFactors
from pipeplan.extensions.planning.estimates.software import software
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.plan_records import Assumption
from pipeplan.extensions.planning.results import Estimate
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.foundation.errors import PipeplanError

WORTH = 0.03
"""Least relative change of step time or peak memory for which an assumption is named."""

_OF_MEGATRON: tuple[Mapping[str, str], ...] = (
    {"32-bit-gradients": "gradients reduced in 32 bits", "16-bit-gradients": "gradients reduced in 16 bits"},
    {"32-bit-moments": "moments of Adam in 32 bits", "16-bit-moments": "moments of Adam in 16 bits"},
    {"16-bit-parameters": "weights in 16 and in 8 bits", "8-bit-parameters": "weights in 8 bits only"},
    {
        "gradients-added-in-products": "products accumulate gradients",
        "gradients-added-apart": "separate kernels accumulate gradients",
    },
    {"delayed-weights": "weight gradients of pairs delayed", "weights-at-once": "weight gradients of pairs at once"},
    {"ring-attention": "CP passes keys in a ring", "all-to-all-attention": "CP exchanges heads all-to-all"},
)
_OF_ALL: tuple[Mapping[str, str], ...] = (
    {"flash-attention": "attention in one kernel (flash)", "unfused-attention": "attention of separate kernels"},
    {"fused-loss": "loss in one kernel", "unfused-loss": "loss of separate kernels"},
    {"no-dropout": "no dropout", "dropout": "dropout"},
    {"cuda-graphs": "kernels in CUDA graphs", "no-cuda-graphs": "no CUDA graphs"},
    {"fused-experts": "experts in one kernel", "unfused-experts": "experts of separate kernels"},
    {"tokens-by-rank": "tokens sent once per rank (DeepEP)", "tokens-by-expert": "tokens sent once per expert"},
    *(
        {f"hidden-{kind}": f"{words} overlapped", f"exposed-{kind}": f"{words} not overlapped"}
        for kind, words in {
            "tensor": "TP communication",
            "context": "CP communication",
            "data": "reduction of gradients",
            "parameters": "gathering of weights",
        }.items()
    ),
)
"""Assumption that each trait of software stands for, in words; the traits of one entry exclude each other. PyTorch's FSDP2
offers no choice of those of Megatron-core."""

_UNSAID = {"16-bit-moments", "cuda-graphs", "fused-experts"}
"""Traits that the flags of plans do not have: a trainer's own settings decide them."""

FULLEST = 1.25
"""Tokens of the fullest expert rank over the mean where routing is not balanced: the capacity factor of the Switch
Transformer (arXiv 2101.03961 section 2.2)."""


_Opposite = tuple[str, str, str, Configuration, ChangedInput]
"""Assumption and its opposite in words, the setting that says it, and what it is: a configuration, and a changed input."""

_UNCHANGED = ChangedInput(input="", factor=1.0)


def assumptions(
    model: ModelShape, cluster: Cluster, predicted: Estimate, *, calibration: TimeFactors | None = None
) -> tuple[Assumption, ...]:
    """Return the assumptions of a prediction whose opposite changes time or memory by :data:`WORTH`, the largest first.

    Each opposite is estimated for the same configuration, which may then need more memory than there is.
    """
    found = []
    for assumed, instead, setting, configuration, change in _opposites(model, cluster, predicted.configuration):
        machines, factors = change.on_cluster(cluster), change.on_factors(calibration)
        with suppress(PipeplanError):  # the configuration does not allow the opposite
            other = estimate(model, machines, configuration, calibration=factors, with_error_bar=False)
            found.append(
                Assumption(
                    assumed=assumed,
                    instead=instead,
                    setting=setting,
                    step_time_s=other.step_time,
                    peak_memory_gib=other.peak_memory_gib,
                    slower=other.step_time / predicted.step_time - 1,
                    more_memory_gib=other.peak_memory_gib - predicted.peak_memory_gib,
                )
            )

    def effect(found: Assumption) -> float:
        return max(abs(found.slower), abs(found.more_memory_gib) / predicted.peak_memory_gib)

    return tuple(sorted((each for each in found if effect(each) >= WORTH), key=effect, reverse=True))


def _opposites(model: ModelShape, cluster: Cluster, chosen: Configuration) -> Iterator[_Opposite]:
    torch = software(chosen.software).framework == "pytorch"
    for group in _OF_ALL if torch else (*_OF_MEGATRON, *_OF_ALL):
        held = [trait for trait in group if software_with(chosen.software, (trait,)) == chosen.software]
        for here, trait in product(held[:1], group):
            row, *others = chosen.software.split(SEPARATOR)
            rest = SEPARATOR.join((row, *(other for other in others if other not in group)))
            name = software_with(rest, (trait,))
            if trait != here:
                setting = "" if trait in _UNSAID else f"software={name}"
                yield group[here], group[trait], setting, replace(chosen, software=name), _UNCHANGED
    schedule = _with_or_without_pairs(model, chosen)
    if schedule:
        exposed, hidden = "EP communication not overlapped", "EP communication overlapped"
        here, there = (exposed, hidden) if chosen.schedule in OVERLAPPED else (hidden, exposed)
        yield here, there, f"schedule={schedule}", replace(chosen, schedule=schedule), _UNCHANGED
    other = "fp8" if chosen.precision in ("bf16", "fp16") else "bf16"
    if other in precisions_of(cluster.gpu):
        here, precise = f"products in {chosen.precision}", replace(chosen, precision=other)
        yield here, f"products in {other}", f"precision={other}", precise, _UNCHANGED
    if model.experts is not None and chosen.expert > 1:
        full = ChangedInput(input="tokens", factor=FULLEST, kinds=("grouped_gemm",), cost=True)
        yield "experts get equally many tokens", f"fullest rank {FULLEST:g} x the mean", "", chosen, full
    for name in ("between", "inside"):
        words = f"{getattr(cluster, name).bandwidth / 1e9:,.4g} GB/s per GPU {name} nodes"
        half = ChangedInput(input="", factor=0.5, links=(name,))
        yield words, "half", "--cluster FILE", chosen, half


def _with_or_without_pairs(model: ModelShape, chosen: Configuration) -> str:
    """Return the schedule that hides exchanges in pairs where a configuration's does not, or the reverse; empty: none."""
    if chosen.schedule in OVERLAPPED.values():
        return next(plain for plain, paired in OVERLAPPED.items() if paired == chosen.schedule)
    paired = OVERLAPPED.get(chosen.schedule, "")
    runs = (chosen.pipeline > 1) == (chosen.chunks > 1) and model.mtp_layers <= (chosen.pipeline > 1)
    return paired if runs and may_hide(chosen) and not excludes(paired, chosen.recompute) else ""
