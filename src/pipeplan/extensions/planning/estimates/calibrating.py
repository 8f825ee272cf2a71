"""Calibration from measurements: kernels of a model on one GPU, or stages of a run, against their predicted times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from pipeplan.extensions.planning.calibration import Calibration, Correction
from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.estimates.seconds import WorkMachine, work_seconds
from pipeplan.extensions.planning.estimates.software import software
from pipeplan.extensions.planning.estimates.stages import stage_costs
from pipeplan.extensions.planning.hardware import Cluster, Gpu, Link, optimizer_time
from pipeplan.extensions.planning.workload import (
    AttentionCore,
    Collective,
    Execution,
    Gemm,
    GroupedGemm,
    LayerWork,
    MemoryPass,
    ModelShape,
    Work,
    layers_of,
)
from pipeplan.foundation.errors import InputError

Timer = Callable[[Work], float]
"""Function that returns the measured seconds of a kernel on the GPU."""

MOST_EXPERTS = 8
"""Maximum number of experts in a measured kernel: one GPU of an expert group holds about as many, with their share of
tokens."""

MOST_PARAMETERS = 1e8
"""Maximum number of parameters in the optimizer measurement: each takes 16 bytes of GPU memory."""

_KIND: dict[type[Work], str] = {
    Gemm: "gemm",
    GroupedGemm: "grouped_gemm",
    AttentionCore: "attention",
    MemoryPass: "memory",
}

UPDATE_BYTES = 28.0
"""Bytes per parameter that fused Adam reads (gradient, weight, two moments) and writes (all but the gradient)."""


def calibrated(
    model: ModelShape,
    gpu: Gpu,
    timer: Timer,
    *,
    sequence: int,
    microbatch_size: int = 1,
    precision: str = "bf16",
    loss: Callable[[float, float], float] | None = None,
    optimizer: Callable[[float], float] | None = None,
    measured_on: str = "",
    progress: Callable[[float], None] = lambda share: None,
) -> Calibration:
    """Measure the correction factors of a GPU: kernels of one layer of each kind, head, loss and optimizer.

    Parameters
    ----------
    timer, loss, optimizer
        Measure one kernel; forward and backward of the cross entropy in 32 bits, for a number of tokens and a vocabulary
        size; and Adam on a number of parameters. None: skip it.
    precision
        ``bf16`` or ``fp16``.
    measured_on
        Device and software, in words.
    progress
        Called with the fraction of kernels measured so far, 0 to 1.
    """
    execution = Execution(
        microbatch_size=microbatch_size,
        sequence=sequence,
        precision="fp16" if precision == "fp16" else "bf16",
        fused_loss=False,
    )
    # Predict on one GPU without a network: collectives are not measured.
    machine = _alone(gpu, execution)
    layers = layers_of(model, execution)
    measured: dict[str, list[tuple[float, float]]] = {}
    parts = list(_parts(layers, execution))
    for place, (kind, work) in enumerate(parts):
        progress(place / len(parts))
        measured.setdefault(kind, []).append((timer(work), _analytic(machine, work)))
    tail = next(layer for layer in layers if layer.kind == "loss")
    if loss is not None:
        works = (*tail.forward, *tail.backward_input)
        analytic = sum(_analytic(machine, work) for work in works)
        measured["loss"] = [(loss(execution.tokens, float(model.vocabulary)), analytic)]
    if optimizer is not None:
        # As many parameters as one layer has: enough to be bound by memory, as a whole rank's are.
        parameters = min(float(_one_of_each(layers)[0].parameters.dense), MOST_PARAMETERS)
        measured["optimizer"] = [(optimizer(parameters), optimizer_time(gpu, parameters, bytes_each=UPDATE_BYTES))]
    progress(1.0)
    words = f"{model.name}, {microbatch_size} x {sequence} tokens"
    empty = Calibration(
        gpu=gpu.name,
        corrections=(),
        model=model.name,
        sequence=sequence,
        microbatch_size=microbatch_size,
        precision=precision,
        measured_on=measured_on,
    )
    return empty.with_corrections(
        Correction(
            kind=kind,
            measured=sum(time for time, _ in pairs),
            analytic=sum(time for _, time in pairs),
            source=f"{_counted(kind, len(pairs))} of {words}",
        )
        for kind, pairs in measured.items()
    )


def updated_by_run(
    calibration: Calibration | None,
    model: ModelShape,
    cluster: Cluster,
    configuration: Configuration,
    stage_seconds: Sequence[float],
    *,
    source: str = "a run",
) -> Calibration:
    """Return a calibration with the ratio of measured to predicted stage times of a run as the factor ``compute``.

    The kernel factors of an earlier calibration are kept. ``stage_seconds`` is the compute time of one microbatch on each
    stage, F and backward with recomputation; shape (stages,).

    Raises InputError if the calibration is for another GPU, or the run has another number of stages or takes no time.
    """
    base = calibration or Calibration(gpu=cluster.gpu.name, corrections=())
    base.require(cluster.gpu)
    # The prediction uses the measured kernels but not an earlier ratio of whole stages, which is replaced.
    without = replace(
        base, corrections=tuple(correction for correction in base.corrections if correction.kind != "compute")
    )
    costs = stage_costs(model, cluster, configuration, calibration=without)
    predicted = costs.forward + costs.backward_input + costs.backward_weight
    if len(stage_seconds) != len(predicted):
        raise InputError(
            f"the run has {len(stage_seconds)} stages but the configuration has {len(predicted)}: expected the same job",
            field="calibrate",
        )
    correction = Correction(
        kind="compute",
        measured=float(sum(stage_seconds)),
        analytic=float(predicted.sum()),
        source=f"stages of {source}",
    )
    return base.with_corrections([correction])


def _alone(gpu: Gpu, execution: Execution) -> WorkMachine:
    """Return one GPU with PyTorch's own kernels and no launch gaps between them."""
    nowhere = Link(bandwidth=1.0, latency=0.0)
    one = Cluster(gpu=gpu, per_node=1, nodes=1, inside=nowhere, between=nowhere)
    return WorkMachine(one, replace(software("torchtitan"), graphs=True), execution)


def _analytic(machine: WorkMachine, work: Work) -> float:
    return float(work_seconds(machine, (work,), "dense").sum())


def _parts(layers: Iterable[LayerWork], execution: Execution) -> Iterator[tuple[str, Work]]:
    """Yield the measured kernels with their kind of work: all kernels of one layer of each sort, and of the head."""
    for layer in _one_of_each(layers):
        for work in (*layer.forward, *layer.backward_input, *layer.backward_weight):
            if isinstance(work, Collective):
                continue
            if isinstance(work, AttentionCore) and 2 * work.keys != execution.sequence:
                continue  # sliding windows: the full attention core is measured in their place
            kind = "head" if layer.kind == "head" else _KIND[type(work)]
            yield kind, _alone_in_torch(work)


def _one_of_each(layers: Iterable[LayerWork]) -> list[LayerWork]:
    chosen: dict[str, LayerWork] = {}
    for layer in sorted(layers, key=lambda layer: "window" in layer.name):
        chosen.setdefault(layer.kind, layer)
    return [chosen[kind] for kind in ("dense", "moe", "head") if kind in chosen]


def _alone_in_torch(work: Work) -> Work:
    """Return the work as PyTorch's own kernels run it: without fused accumulation, and with at most one GPU's experts."""
    if isinstance(work, Gemm):
        return replace(work, accumulates=False)
    if isinstance(work, GroupedGemm) and work.groups > MOST_EXPERTS:
        # Fewer experts with as many rows each: the kernel has the same shape per expert.
        share = MOST_EXPERTS / work.groups
        return replace(work, groups=float(MOST_EXPERTS), rows=work.rows * share, accumulates=False)
    return replace(work, accumulates=False) if isinstance(work, GroupedGemm) else work


def _counted(kind: str, number: int) -> str:
    if kind in ("loss", "optimizer"):
        return f"the {kind}"
    return f"{number} kernel{'s' if number > 1 else ''}"
