"""How far off predictions were on the nearest published runs: error bars, and the distance that says what is near.

The shipped table (``published_runs.json``, made by ``make bench-plan``) holds one entry a run: what it was, and what was
measured over what is predicted for it without calibration. An error bar is the range of that ratio over the nearest runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from math import log2

import msgspec

from pipeplan.hardware import Cluster
from pipeplan.planner.answers import ErrorBar
from pipeplan.planner.configuration import Configuration
from pipeplan.workload import ModelShape

NEAREST = 24
"""Runs that an error bar is made of."""

FROM_ONE = 3
"""Maximum number of runs of one source and model: many sizes of one model are no more evidence than a few."""

FARTHEST = 5.0
"""Distance beyond which a run says nothing."""

LEAST = 4
"""Runs below which there is no error bar."""


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of a run that decide its distance to others.

    Attributes
    ----------
    generation, gpu, precision, software
        Of the GPUs, their name, of the products, and the trainer.
    experts
        Whether the model has any.
    hidden, sequence, tensor, pipeline, context, gpus
        h, s, t, p, c, and how many GPUs.
    """

    generation: str
    gpu: str
    precision: str
    software: str
    experts: bool
    hidden: int
    sequence: int
    tensor: int
    pipeline: int
    context: int
    gpus: int


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A published run beside its prediction.

    Attributes
    ----------
    id, source, model
        Its name, where it was published, and what was trained.
    features
        What it was.
    ratio
        Measured over predicted step time.
    """

    id: str
    source: str
    model: str
    features: Features
    ratio: float


class ErrorTable(msgspec.Struct, frozen=True, kw_only=True):
    """The shipped runs.

    Attributes
    ----------
    runs
        All that were predicted.
    coverage
        Fraction of them that lie in an error bar made of other sources' runs only.
    """

    runs: tuple[Compared, ...]
    coverage: float = 0.0


UNLIKE = {"generation": 2.0, "gpu": 0.5, "precision": 1.0, "software": 0.5, "experts": 1.5}
"""Distance for being another; a GPU of another generation is no other GPU besides."""

PER_DOUBLING = {
    "hidden": 0.5,
    "sequence": 0.25,
    "tensor": 0.3,
    "pipeline": 0.2,
    "context": 0.3,
    "gpus": 0.1,
}
"""Distance for each factor of 2."""


def features_of(model: ModelShape, cluster: Cluster, configuration: Configuration) -> Features:
    """Return the properties of a configuration that decide its distance to published runs."""
    return Features(
        generation=cluster.gpu.generation,
        gpu=cluster.gpu.name,
        precision="bf16" if configuration.precision == "fp16" else configuration.precision,
        software=configuration.software,
        experts=model.experts is not None,
        hidden=model.hidden,
        sequence=configuration.sequence,
        tensor=configuration.tensor,
        pipeline=configuration.pipeline,
        context=configuration.context,
        gpus=configuration.gpus,
    )


def distance(first: Features, second: Features) -> float:
    """The sum of :data:`UNLIKE` for what differs in kind and of :data:`PER_DOUBLING` for what differs in size."""
    total = sum(
        cost
        for name, cost in UNLIKE.items()
        if getattr(first, name) != getattr(second, name) and (name != "gpu" or first.generation == second.generation)
    )
    return total + sum(
        cost * abs(log2(getattr(first, name) / getattr(second, name))) for name, cost in PER_DOUBLING.items()
    )


def nearest(features: Features, runs: Iterable[Compared]) -> list[Compared]:
    """The nearest runs, the nearest first: :data:`NEAREST` at most, :data:`FROM_ONE` of one source and model."""
    found: list[Compared] = []
    taken: dict[tuple[str, str], int] = {}
    for far, run in sorted(((distance(features, run.features), run) for run in runs), key=lambda pair: pair[0]):
        if far > FARTHEST or len(found) == NEAREST:
            break
        key = run.source, run.model
        if taken.get(key, 0) < FROM_ONE:
            taken[key] = taken.get(key, 0) + 1
            found.append(run)
    return found


def bar(runs: Sequence[Compared]) -> ErrorBar | None:
    """Return the bar from the second lowest to the second highest ratio of the runs and 1; None for too few runs."""
    if len(runs) < LEAST:
        return None
    ratios = sorted(run.ratio for run in runs)
    inner = ratios[1:-1] if len(ratios) > 2 * LEAST else ratios
    return ErrorBar(low=min(inner[0], 1.0), high=max(inner[-1], 1.0), runs=tuple(run.id for run in runs))


def error_bar(
    model: ModelShape, cluster: Cluster, configuration: Configuration, *, without: str = ""
) -> ErrorBar | None:
    """Return the error bar of a configuration from the nearest published runs; None where too few are near.

    Source of the runs: the table of :func:`table`; how often such bars hold is its ``coverage``.

    Parameters
    ----------
    without
        The id of a run that is left out: the one that is predicted.
    """
    runs = (run for run in table().runs if run.id != without)
    return bar(nearest(features_of(model, cluster, configuration), runs))


def coverage(runs: Sequence[Compared]) -> float:
    """Fraction of runs inside the error bar that runs of other sources alone would give; those without one do not count."""
    bars = [(run, bar(nearest(run.features, (each for each in runs if each.source != run.source)))) for run in runs]
    held = [found.low <= run.ratio <= found.high for run, found in bars if found is not None]
    return sum(held) / len(held) if held else 0.0


@cache
def table() -> ErrorTable:
    """The shipped runs; none where the file is not there."""
    file = files("pipeplan.planner").joinpath("published_runs.json")
    if not file.is_file():
        return ErrorTable(runs=())
    return msgspec.json.decode(file.read_bytes(), type=ErrorTable)
