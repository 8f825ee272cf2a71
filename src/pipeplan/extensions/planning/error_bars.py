"""Error bars of predictions: how far runs of the same kind were off.

The kind of a run is the generation of its GPUs, whether the model has experts, and whether its context is long. The shipped
table (``error_bars.json``, written by ``make bench-plan``) has the range of measured over predicted step times for each kind
with published runs, where the constants of each prediction were fitted without the run's source: the range says how far a
prediction is off for what nobody has seen yet. It widens where a configuration goes beyond all of these runs.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from math import log2

import msgspec

from pipeplan.extensions.planning.configuration import Configuration
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.results import ErrorBar
from pipeplan.extensions.planning.workload import ModelShape

LONG = 16384
"""Tokens of a sequence beyond which a context is long: attention takes a third of a layer's time or more."""

UNSEEN = 1.5
"""Factor on the logarithms of a range if too few sources have runs of its kind: it is then made of those on all generations
of GPUs."""

PER_DOUBLING = 0.25
"""Fraction by which the logarithms of a range grow for each factor of 2 beyond the longest sequence or the most GPUs."""


class RunKind(msgspec.Struct, frozen=True, kw_only=True):
    """Kind of a run: generation of its GPUs (empty: any), and whether it has experts and more than :data:`LONG` tokens."""

    generation: str
    experts: bool
    long: bool

    def __str__(self) -> str:
        """Return the kind in words."""
        name = self.generation.upper() if self.generation.startswith("cdna") else self.generation.capitalize()
        where = f"on {name} GPUs " if self.generation else ""
        model = f"{where}{'with' if self.experts else 'without'} experts"
        return f"{model} and with sequences beyond {LONG:,} tokens" if self.long else model


class ErrorRange(msgspec.Struct, frozen=True, kw_only=True):
    """Range of measured over predicted step times of the runs of a kind, without the lowest and the highest tenth.

    ``runs`` and ``sources`` are their numbers, ``examples`` the id of a run of each source, ``sequence`` and ``gpus`` the
    longest sequence in tokens and most GPUs.
    """

    kind: RunKind
    low: float
    high: float
    runs: int
    sources: int
    examples: tuple[str, ...]
    sequence: int
    gpus: int


class MemoryRange(msgspec.Struct, frozen=True, kw_only=True):
    """Range of measured over predicted peak memory: most runs lie within it. Too few runs report theirs for kinds."""

    low: float = 1.0
    high: float = 1.0


class ErrorTable(msgspec.Struct, frozen=True, kw_only=True):
    """Table that is shipped with the package.

    ``ranges`` are those of each kind of which several sources have runs, and of runs on any generation; ``held`` is the
    fraction of the runs that lie within the range made of other sources' runs.
    """

    ranges: tuple[ErrorRange, ...]
    held: float = 0.0
    memory: MemoryRange = MemoryRange()

    def of(self, kind: RunKind) -> tuple[ErrorRange | None, float]:
        """Return the range for a kind, and by which factor its logarithms are widened if it is of any generation."""
        ranges = {each.kind: each for each in self.ranges}
        if kind in ranges:
            return ranges[kind], 1.0
        return ranges.get(msgspec.structs.replace(kind, generation="")), UNSEEN


def kind_of(model: ModelShape, cluster: Cluster, configuration: Configuration) -> RunKind:
    """Return the kind of a run."""
    return RunKind(
        generation=cluster.gpu.generation, experts=model.experts is not None, long=configuration.sequence > LONG
    )


def error_bar(model: ModelShape, cluster: Cluster, configuration: Configuration, step_time: float) -> ErrorBar | None:
    """Return the error bar of a predicted step time in seconds, from published runs of its kind; None without a table."""
    kind = kind_of(model, cluster, configuration)
    found, wider = table().of(kind)
    if found is None:
        return None
    like = f"{found.runs} published runs {found.kind} from {found.sources} sources"
    beyond = []
    if found.kind != kind:
        beyond.append(f"too few of them {kind}")
    for size, most, words in (
        (configuration.sequence, found.sequence, "their sequences have at most {:,} tokens"),
        (cluster.gpus, found.gpus, "they have at most {:,} GPUs"),
    ):
        if size > most:
            wider += PER_DOUBLING * log2(size / most)
            beyond.append(words.format(most))
    low, high = found.low**wider, found.high**wider
    return ErrorBar(
        low=low,
        high=high,
        step_time_s=(step_time * low, step_time * high),
        basis=f"{like} ({', '.join(beyond)}: the range is wider)" if beyond else like,
        runs=found.examples,
        coverage=table().held,
    )


@cache
def table() -> ErrorTable:
    """Return the shipped table; empty if the file is missing."""
    file = files("pipeplan.extensions.planning").joinpath("error_bars.json")
    if not file.is_file():
        return ErrorTable(ranges=())
    return msgspec.json.decode(file.read_bytes(), type=ErrorTable)
