"""The model to beat: one constant fraction of the peak for all runs of a kind of GPU, precision and model.

The fraction of a run comes from the runs of *other* models (leave one model out) on the same GPU, in the same precision,
dense or with experts, each model counting once; where there are none, of runs that share less. The step is then FLOPs over
it, times the pipeline's bubble 1 + (p - 1) / (v m).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from pipeplan.extensions.planning import Configuration, software
from pipeplan.extensions.planning.estimates.stages import format_peak
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.workload import ModelShape, token_flops


@dataclass(frozen=True, kw_only=True)
class Known:
    """A run whose step time is known.

    Attributes
    ----------
    model, cluster, configuration
        What ran.
    step_time
        Measured; seconds.
    """

    model: ModelShape
    cluster: Cluster
    configuration: Configuration
    step_time: float

    @cached_property
    def fraction(self) -> float:
        """Of the peak of its products' format that the run reached, its bubble aside."""
        return run_flops(self) / (_peak(self) * self.cluster.gpus * self.step_time) * filling(self.configuration)


_KINDS: tuple[Callable[[Known], object], ...] = (
    lambda run: (run.cluster.gpu.name, run.configuration.precision, run.model.experts is not None),
    lambda run: (run.cluster.gpu.generation, run.configuration.precision, run.model.experts is not None),
    lambda run: (run.cluster.gpu.generation, run.model.experts is not None),
    lambda run: (_peak(run), run.model.experts is not None),
    lambda run: run.model.experts is not None,
    lambda run: None,
)
"""What runs share that a fraction is taken from, from most to least."""


def run_flops(run: Known) -> float:
    """Of a step on all GPUs: causal attention half where flash attention ran, one forward more where all runs again."""
    causal = software(run.configuration.software).attention == "flash"
    tokens = run.configuration.global_batch * run.configuration.sequence
    again = 4 / 3 if "full" in run.configuration.recompute else 1.0
    return token_flops(run.model, run.configuration.sequence, causal=causal).training * tokens * again


def filling(configuration: Configuration) -> float:
    """1 + (p - 1) / (v m)."""
    return 1 + (configuration.pipeline - 1) / (configuration.chunks * max(1, configuration.microbatches))


def null_step_time(run: Known, others: Sequence[Known]) -> float | None:
    """What the null model says of a run, given others; seconds. None where no other model is among them."""
    others = [each for each in others if each.model.name != run.model.name]
    for kind in _KINDS:
        by_model: dict[str, list[float]] = {}
        for each in others:
            if kind(each) == kind(run):
                by_model.setdefault(each.model.name, []).append(each.fraction)
        if by_model:
            reached = _peak(run) * run.cluster.gpus * fmean(map(fmean, by_model.values()))
            return run_flops(run) / reached * filling(run.configuration)
    return None


def _peak(run: Known) -> float:
    return format_peak(run.cluster.gpu, run.configuration.precision)
