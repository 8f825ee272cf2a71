"""What ``pipeplan plan --json`` and ``pipeplan estimate --json`` answer, and the file of a calibration, key by key."""

from __future__ import annotations

from typing import Any, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from pipeplan.hardware import Link
from pipeplan.planner import Configuration, Counts, Sensitivity
from pipeplan.workload import ModelShape


class _Record(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Has the keys of its fields and no others."""


class BreakdownRecord(_Record):
    """Where a step's time goes, in seconds: what adds up to it."""

    compute_s: float
    recompute_s: float
    tensor_s: float
    context_s: float
    expert_s: float
    bubble_s: float
    overhead_s: float
    data_s: float
    optimizer_s: float


class MemoryBreakdownRecord(_Record):
    """Where a rank's memory goes, in GiB: what adds up to its peak."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    transient: float
    buffers: float


class ErrorBarRecord(_Record):
    """Measured over predicted in published runs like it, from the least to the most; the step times, and the runs."""

    low: float
    high: float
    step_time_s: list[float]
    runs: list[str]


def _configuration_record() -> Any:
    """All that a configuration chooses, each key there, with what follows from it."""
    chosen = [*get_type_hints(Configuration).items(), ("gpus", int), ("microbatches", int)]
    doc = "Degrees, batch, schedule, layout and what is computed again, with the GPUs and microbatches that makes."
    return msgspec.defstruct(
        "ConfigurationRecord", chosen, namespace={"__doc__": doc}, kw_only=True, forbid_unknown_fields=True
    )


ConfigurationRecord: Any = _configuration_record()
"""What was estimated."""


class EstimateRecord(_Record):
    """What is predicted of one configuration: times in seconds, memory in GiB."""

    step_time_s: float
    peak_memory_gib: float
    peak_memory_by_rank_gib: list[float]
    breakdown: BreakdownRecord
    memory_breakdown_by_rank_gib: list[MemoryBreakdownRecord]
    tokens_per_s: float
    flops: float
    mfu: float
    error_bar: ErrorBarRecord | None
    costs_from: dict[str, str]
    assumed: list[str]
    configuration: ConfigurationRecord


class MeasuredRecord(_Record):
    """What a real run took, as far as its file says it."""

    step_time_s: float | UnsetType = UNSET
    peak_memory_gib: float | UnsetType = UNSET


class ErrorRecord(_Record):
    """Predicted over measured, less 1."""

    step_time: float | None
    peak_memory: float | None


class EstimatedRowRecord(_Record):
    """One configuration of a file; ``refused`` says why where there are no figures."""

    id: str
    step_time_s: float | None
    peak_memory_gib: float | None
    peak_memory_by_rank_gib: list[float] | None
    breakdown: BreakdownRecord | None
    error_bar: ErrorBarRecord | None
    assumed: list[str]
    refused: str | None
    memory_breakdown_by_rank_gib: list[MemoryBreakdownRecord] | UnsetType = UNSET
    tokens_per_s: float | UnsetType = UNSET
    flops: float | UnsetType = UNSET
    mfu: float | UnsetType = UNSET
    costs_from: dict[str, str] | UnsetType = UNSET
    configuration: ConfigurationRecord | UnsetType = UNSET
    measured: MeasuredRecord | UnsetType = UNSET
    error: ErrorRecord | UnsetType = UNSET


class EstimatesRecord(_Record):
    """``pipeplan estimate --json``, in the order of the file."""

    rows: list[EstimatedRowRecord]


class FlagsRecord(_Record):
    """What to paste for one trainer, the files that it names, and what it cannot say."""

    text: str
    files: dict[str, str]
    warnings: list[str]


class BestRecord(EstimateRecord, kw_only=True, forbid_unknown_fields=True):
    """What to train with, and the flags that say so, by trainer."""

    flags: dict[str, FlagsRecord]


class RunnerUpRecord(EstimateRecord, kw_only=True, forbid_unknown_fields=True):
    """Another configuration, and why it is not the best."""

    lost_because: str


class MissRecord(EstimateRecord, kw_only=True, forbid_unknown_fields=True):
    """Where nothing fits, what comes nearest: how far over the memory it is, and what would help."""

    over_by_gib: float
    change: str


class SearchedRecord(EstimateRecord, kw_only=True, forbid_unknown_fields=True):
    """The best configuration with a better order of ops than the published ones."""

    instead_of_s: float
    found_by: str
    optimality_gap: float


class GpuRecord(_Record):
    """A GPU as its data sheet has it; FLOP/s by format, bytes, bytes/s."""

    name: str
    peak: dict[str, float]
    memory_bytes: float
    memory_bandwidth: float
    host_bandwidth: float
    price: float | None
    source: str
    generation: str
    multiprocessors: int
    sustained: float


class ClusterRecord(_Record):
    """GPUs, nodes, and the links inside of a node and between them; ``joined`` GPUs have the fast links."""

    per_node: int
    nodes: int
    gpus: int
    joined: int
    inside: Link
    between: Link
    gpu: GpuRecord


class PlanRecord(_Record):
    """``pipeplan plan --json``: ``best`` is null, and ``closest_miss`` is not, where nothing fits."""

    model: ModelShape
    cluster: ClusterRecord
    objective: str
    memory_limit_gib: float
    best: BestRecord | None
    runners_up: list[RunnerUpRecord]
    front: list[EstimateRecord]
    sensitivity: list[Sensitivity]
    closest_miss: MissRecord | None
    searched: SearchedRecord | None
    counts: Counts
    seconds: float
    complete: bool
    optimality_gap: float | None
    left_out: list[str]


class PresetModelRecord(_Record):
    """A model that is known by name."""

    name: str
    layers: int
    hidden: int
    heads: int
    vocabulary: int
    experts: int
    trained_sequence: int | None
    source: str


class ModelsRecord(_Record):
    """``pipeplan plan --models --json``."""

    models: list[PresetModelRecord]


class PresetGpuRecord(_Record):
    """A GPU that is known by name, in its usual node."""

    name: str
    peak_flops: dict[str, float]
    memory_bytes: float
    memory_bandwidth: float
    per_node: int
    joined: int
    bandwidth_inside: float
    bandwidth_between: float
    source: str


class GpusRecord(_Record):
    """``pipeplan plan --gpus --json``."""

    gpus: list[PresetGpuRecord]


class FactorRecord(_Record):
    """What one kind of work took over what it should, and the seconds of both."""

    factor: float
    measured: float
    analytic: float
    source: str


class CalibrationRecord(_Record):
    """``pipeplan profile --calibrate --json``, and the file that it writes."""

    gpu: str
    model: str
    sequence: int
    microbatch_size: int
    precision: str
    measured_on: str
    factors: dict[str, FactorRecord]
