"""Error bars from published runs: the nearest runs, and how far off their predictions were.

The shipped table (``published_runs.json``, written by ``make bench-plan``) has one entry per run: its properties, and its
measured over its predicted step time without calibration. An error bar is the range of that ratio over the nearest runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from math import exp, inf, log, log2

import msgspec

from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.results import ErrorBar
from pipeplan.extensions.planning.workload import ModelShape

NEAREST = 24
"""Number of runs in an error bar."""

FROM_ONE = 3
"""Maximum number of runs of one source and model: many sizes of one model are not more evidence than a few."""

FARTHEST = 5.0
"""Maximum distance of a run in an error bar."""

LEAST = 4
"""Minimum number of runs in an error bar."""

NEAR = 3.0
"""Maximum distance of the nearest run: beyond it, there is no error bar."""

TAILS = 0.1
"""Fraction of the runs beyond either end of an error bar before it is widened."""

WIDER = 0.3
"""Fraction by which an error bar grows for each unit of distance of the nearest run."""

ROUNDED = 0.03
"""Minimum half width of an error bar before it is widened: what two measurements of one run differ by."""


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of a run that decide its distance to others.

    Attributes
    ----------
    generation, gpu, precision, software
        Generation and name of the GPUs, number format of the products, and trainer.
    experts
        Whether the model has experts.
    hidden, sequence, tensor, pipeline, context, gpus
        Hidden size, sequence length, degrees, and number of GPUs.
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


class Compared(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Published run with the error of its prediction.

    Attributes
    ----------
    id, source, model
        Name of the run, where it was published, and the model.
    features
        Properties that decide its distance to other runs.
    ratio
        Measured over predicted step time.
    memory
        Measured over predicted peak memory; None: not measured.
    """

    id: str
    source: str
    model: str
    features: Features
    ratio: float
    memory: float | None = None


class MemoryBar(msgspec.Struct, frozen=True, kw_only=True):
    """Range of measured over predicted peak memory: most runs lie within it."""

    low: float = 1.0
    high: float = 1.0


class ErrorTable(msgspec.Struct, frozen=True, kw_only=True):
    """Table of published runs that is shipped with the package.

    Attributes
    ----------
    runs
        Every run with a prediction.
    coverage
        Fraction of the runs that lie within the error bar made of other sources' runs only.
    memory
        Error bar of peak memory; it is the same for all configurations, because too few runs report theirs.
    """

    runs: tuple[Compared, ...]
    coverage: float = 0.0
    memory: MemoryBar = MemoryBar()


UNLIKE = {"generation": 2.0, "gpu": 0.5, "precision": 1.0, "software": 0.5, "experts": 1.5}
"""Distance for each differing property. A different GPU counts only within one generation."""

PER_DOUBLING = {
    "hidden": 0.5,
    "sequence": 0.25,
    "tensor": 0.3,
    "pipeline": 0.2,
    "context": 0.3,
    "gpus": 0.1,
}
"""Distance per factor of 2 of each size."""


def features_of(model: ModelShape, cluster: Cluster, configuration: Configuration) -> Features:
    """Return the properties of a configuration that decide its distance to published runs."""
    return Features(
        generation=cluster.gpu.generation,
        gpu=cluster.gpu.name,
        # fp16 and bf16 have the same peak and the same bytes.
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
    """Return the distance of two runs: :data:`UNLIKE` for properties that differ and :data:`PER_DOUBLING` for sizes."""
    total = sum(
        cost
        for name, cost in UNLIKE.items()
        if getattr(first, name) != getattr(second, name) and (name != "gpu" or first.generation == second.generation)
    )
    return total + sum(
        cost * abs(log2(getattr(first, name) / getattr(second, name))) for name, cost in PER_DOUBLING.items()
    )


def nearest(features: Features, runs: Iterable[Compared]) -> list[Compared]:
    """Return at most :data:`NEAREST` runs, the nearest first, with at most :data:`FROM_ONE` of one source and model."""
    chosen: list[Compared] = []
    taken: dict[tuple[str, str], int] = {}
    for far, run in sorted(((distance(features, run.features), run) for run in runs), key=lambda pair: pair[0]):
        if far > FARTHEST or len(chosen) == NEAREST:
            break
        key = run.source, run.model
        if taken.get(key, 0) < FROM_ONE:
            taken[key] = taken.get(key, 0) + 1
            chosen.append(run)
    return chosen


def bar(features: Features, runs: Iterable[Compared]) -> tuple[tuple[float, float] | None, list[Compared]]:
    """Return the range of the ratios of the nearest runs, and these runs; no range if too few runs are near.

    The lowest and the highest tenth are left out. The range, in logarithms, starts at :data:`ROUNDED` on either side of the
    prediction, and grows by :data:`WIDER` for each unit of distance of the nearest run.
    """
    chosen = nearest(features, runs)
    far = distance(features, chosen[0].features) if chosen else inf
    if len(chosen) < LEAST or far > NEAR:
        return None, chosen
    logs = sorted(log(run.ratio) for run in chosen)
    cut = int(TAILS * len(logs))
    wider = 1.0 + WIDER * far
    return (exp(wider * min(logs[cut], -ROUNDED)), exp(wider * max(logs[-1 - cut], ROUNDED))), chosen


def error_bar(model: ModelShape, cluster: Cluster, configuration: Configuration, step_time: float) -> ErrorBar | None:
    """Return the error bar of a configuration from the nearest published runs; None if too few are near.

    Source of the runs: the table of :func:`table`; how often such bars hold is its ``coverage``.

    Parameters
    ----------
    step_time
        Predicted step time in seconds.
    """
    features = features_of(model, cluster, configuration)
    interval, runs = bar(features, table().runs)
    if interval is None:
        return None
    low, high = interval
    return ErrorBar(
        low=low,
        high=high,
        step_time_s=(step_time * low, step_time * high),
        runs=tuple(run.id for run in runs),
        coverage=table().coverage,
    )


def why_no_bar(model: ModelShape, cluster: Cluster, configuration: Configuration) -> str:
    """Return one sentence that says how the nearest published run differs from a configuration without an error bar."""
    features = features_of(model, cluster, configuration)
    runs = nearest(features, table().runs)
    if not runs:
        return "error bar: none, because no published run is near"
    first = runs[0]
    unlike = [name for name in UNLIKE if getattr(features, name) != getattr(first.features, name)]
    words = ", ".join(_WORDS.get(name, name) for name in unlike) or "size"
    few = "only a few published runs are" if distance(features, first.features) <= NEAR else "no published run is"
    return f"error bar: none, because {few} near; the nearest, {first.id}, differs in {words}"


_WORDS = {"generation": "generation of GPUs", "gpu": "GPU", "experts": "experts"}


@cache
def table() -> ErrorTable:
    """Return the shipped table; empty if the file is missing."""
    file = files("pipeplan.extensions.planning").joinpath("published_runs.json")
    if not file.is_file():
        return ErrorTable(runs=())
    return msgspec.json.decode(file.read_bytes(), type=ErrorTable)
