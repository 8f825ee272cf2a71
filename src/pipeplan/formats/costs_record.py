"""pipeplan's own JSON of costs: times and memory per stage.

::

    {"format": "pipeplan-costs", "version": 1, "time_unit": "ms", "forward": [1.0, 1.0], "backward": [2.0, 2.0],
     "backward_input": [1.0, 1.0], "backward_weight": [1.0, 1.0], "recompute": [1.0, 1.0], "overlap": null,
     "transfer": {"latency": 0.1, "bytes": 0.0, "bandwidth": null},
     "memory": {"activation": [1.0, 1.0], "freed_by_weight": [1.0, 1.0], "static": [0.0, 0.0], "in_bytes": false}}

Optional keys: ``offload`` (time of a copy to the host per stage), ``unshard`` and ``reduce`` (times to gather the parameters
of a stage and to reduce its gradients), ``overhead`` (``op_gap``, ``message_time``, ``step_time``), ``communication``
(default ``edge``), ``streams`` (default ``rank``), ``factors`` (of each microbatch on times and bytes, where microbatches
differ: the setting ``microbatch_factors``), ``slice_attention`` (share per stage, where slices differ), ``segments`` (of
each stage's ops, with ``slowdown`` and ``delayed_weights``; then ``overlap`` is null), ``settings`` (those of the schedule
and its memory limit that differ from their defaults, by their names), and in ``memory``
``recompute_keeps`` (default 0), ``offloaded`` (default the activation), ``parameters`` and ``gradients`` (default 0).
``bandwidth`` is null if a transfer takes only its latency. Unknown keys are errors. A config file (``--config``) is a
shorter form for equal stages.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from pipeplan.costs import (
    Communication,
    Costs,
    FactorTable,
    FactorTables,
    Memory,
    MicrobatchFactors,
    Overhead,
    Segments,
    Settings,
    SliceAttention,
    Transfer,
    pair_table,
    settings_beside,
    settings_given,
)
from pipeplan.formats.decoding import decoded
from pipeplan.formats.format import Format
from pipeplan.foundation.documents import json_text
from pipeplan.foundation.errors import CostError, FormatError, InputError
from pipeplan.model import NOT_GIVEN, Floats, Sharding, Streams

VERSION = 1

_FORMAT_STANDS_WITHIN = 200
"""Number of leading characters in which to look for the format, which is the first key that is written."""

Times = list[float]


class TransferRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Message between two ranks, which takes latency + bytes / bandwidth."""

    latency: float
    bytes: float
    bandwidth: float | None


class MemoryRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Memory of stages; see :class:`~pipeplan.costs.Memory`."""

    activation: Times
    freed_by_weight: Times
    static: Times
    in_bytes: bool
    recompute_keeps: Times | msgspec.UnsetType = msgspec.UNSET
    offloaded: Times | msgspec.UnsetType = msgspec.UNSET
    parameters: Times | msgspec.UnsetType = msgspec.UNSET
    gradients: Times | msgspec.UnsetType = msgspec.UNSET


class OverheadRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Overhead of ranks; see :class:`~pipeplan.costs.Overhead`."""

    op_gap: float
    message_time: float
    step_time: float


class SettingsBesideRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Settings of the schedule and its memory limit."""

    # Every setting that costs do not contain (pipeplan.costs.IN_COSTS).
    microbatches: int | msgspec.UnsetType | None = msgspec.UNSET
    chunks: int | msgspec.UnsetType | None = msgspec.UNSET
    recompute: str | tuple[int, ...] | msgspec.UnsetType = msgspec.UNSET
    offload: str | tuple[int, ...] | msgspec.UnsetType = msgspec.UNSET
    sharding: Sharding | msgspec.UnsetType | None = msgspec.UNSET
    max_active_stages: int | msgspec.UnsetType | None = msgspec.UNSET
    unshard_lookahead: str | msgspec.UnsetType | None = msgspec.UNSET
    memory_limit: float | str | tuple[float | str, ...] | msgspec.UnsetType | None = msgspec.UNSET
    group_size: int | msgspec.UnsetType | None = msgspec.UNSET
    slices: int | msgspec.UnsetType | None = msgspec.UNSET
    variant: str | msgspec.UnsetType | None = msgspec.UNSET


class SegmentsRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Segments of all stages, by op, each a mapping of its name to its time; see :class:`~pipeplan.costs.Segments`."""

    stages: list[dict[str, list[dict[str, float]]]]
    slowdown: float = 1.0
    delayed_weights: bool = False


class CostsRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Costs in JSON; see :class:`~pipeplan.costs.Costs`."""

    format: Literal["pipeplan-costs"] = "pipeplan-costs"
    version: int
    time_unit: str
    forward: Times
    backward: Times
    backward_input: Times
    backward_weight: Times
    recompute: Times
    overlap: list[float | Times] | None
    transfer: TransferRecord
    memory: MemoryRecord
    overhead: OverheadRecord | msgspec.UnsetType = msgspec.UNSET
    offload: Times | msgspec.UnsetType = msgspec.UNSET
    unshard: Times | msgspec.UnsetType = msgspec.UNSET
    reduce: Times | msgspec.UnsetType = msgspec.UNSET
    communication: Communication | msgspec.UnsetType = msgspec.UNSET
    streams: Streams | msgspec.UnsetType = msgspec.UNSET
    factors: FactorTable | FactorTables | msgspec.UnsetType = msgspec.UNSET
    slice_attention: Times | msgspec.UnsetType = msgspec.UNSET
    segments: SegmentsRecord | msgspec.UnsetType = msgspec.UNSET
    settings: SettingsBesideRecord | msgspec.UnsetType = msgspec.UNSET


def costs_json(costs: Costs) -> str:
    """Return costs as JSON."""
    transfer, memory, attention = costs.transfer, costs.memory, costs.slice_attention
    record = CostsRecord(
        version=VERSION,
        time_unit=costs.time_unit,
        forward=costs.forward.tolist(),
        backward=costs.backward.tolist(),
        backward_input=costs.backward_input.tolist(),
        backward_weight=costs.backward_weight.tolist(),
        recompute=costs.recompute.tolist(),
        overlap=None if costs.overlap is None else costs.overlap.tolist(),
        transfer=TransferRecord(
            latency=float(transfer.latency),
            bytes=float(transfer.bytes),
            bandwidth=None if np.isinf(transfer.bandwidth) else float(transfer.bandwidth),
        ),
        memory=_memory_record(memory),
        overhead=_overhead_record(costs.overhead),
        offload=msgspec.UNSET if costs.offload is None else costs.offload.tolist(),
        unshard=msgspec.UNSET if costs.unshard is None else costs.unshard.tolist(),
        reduce=msgspec.UNSET if costs.reduce is None else costs.reduce.tolist(),
        communication=msgspec.UNSET if costs.communication == "edge" else costs.communication,
        streams=msgspec.UNSET if costs.streams == "rank" else costs.streams,
        factors=msgspec.UNSET if costs.factors is None else costs.factors.tables,
        slice_attention=msgspec.UNSET if attention is None else attention.forward.tolist(),
        segments=msgspec.UNSET
        if (own := costs.segments) is None
        else SegmentsRecord(
            stages=[stage.in_files() for stage in own.stages],
            slowdown=own.slowdown,
            delayed_weights=own.delayed_weights,
        ),
        settings=SettingsBesideRecord(**beside) if (beside := settings_beside(costs)) else msgspec.UNSET,
    )
    return json_text(record, compact=True) + "\n"


def _memory_record(memory: Memory) -> MemoryRecord:
    """Return the record of memory without fields that have their defaults."""
    all_moved = np.array_equal(memory.offloaded, memory.activation)
    return MemoryRecord(
        activation=memory.activation.tolist(),
        freed_by_weight=memory.freed_by_weight.tolist(),
        static=memory.static.tolist(),
        in_bytes=memory.in_bytes,
        recompute_keeps=memory.recompute_keeps.tolist() if memory.recompute_keeps.any() else msgspec.UNSET,
        offloaded=msgspec.UNSET if all_moved else memory.offloaded.tolist(),
        parameters=memory.parameters.tolist() if memory.parameters.any() else msgspec.UNSET,
        gradients=memory.gradients.tolist() if memory.gradients.any() else msgspec.UNSET,
    )


def _overhead_record(lost: Overhead) -> OverheadRecord | msgspec.UnsetType:
    """Return the record of overhead; UNSET if there is none."""
    if lost == Overhead():
        return msgspec.UNSET
    return OverheadRecord(op_gap=lost.op_gap, message_time=lost.message_time, step_time=lost.step_time)


def is_costs_json(text: str) -> bool:
    """Return True if a text declares the format of costs."""
    return '"pipeplan-costs"' in text[:_FORMAT_STANDS_WITHIN]


def parse_costs_json(text: str, *, name: str = "") -> Costs:
    """Return the costs in the text of :func:`costs_json`."""
    try:
        return _costs(decoded(text, CostsRecord, VERSION))
    except FormatError as error:
        raise FormatError(f"{name}: {error}") from None
    except InputError as error:
        error.args = (f"{name}: {error}",)
        raise


def _costs(record: CostsRecord) -> Costs:
    transfer, lost, attention = record.transfer, record.overhead, record.slice_attention
    stages = len(record.forward)
    factors = None if record.factors is msgspec.UNSET else MicrobatchFactors.of(record.factors, range(stages))
    return Costs(
        forward=np.array(record.forward),
        backward=np.array(record.backward),
        backward_input=np.array(record.backward_input),
        backward_weight=np.array(record.backward_weight),
        recompute=np.array(record.recompute),
        overlap=_overlap(record),
        transfer=Transfer(
            latency=transfer.latency,
            bytes=transfer.bytes,
            bandwidth=np.inf if transfer.bandwidth is None else transfer.bandwidth,
        ),
        memory=_memory(record, NOT_GIVEN if factors is None else factors.size),
        overhead=Overhead() if lost is msgspec.UNSET else Overhead(lost.op_gap, lost.message_time, lost.step_time),
        time_unit=record.time_unit,
        offload=None if record.offload is msgspec.UNSET else np.array(record.offload),
        unshard=None if record.unshard is msgspec.UNSET else np.array(record.unshard),
        reduce=None if record.reduce is msgspec.UNSET else np.array(record.reduce),
        communication="edge" if record.communication is msgspec.UNSET else record.communication,
        streams="rank" if record.streams is msgspec.UNSET else record.streams,
        factors=factors,
        slice_attention=None if attention is msgspec.UNSET else SliceAttention.of(_of_stages(attention, stages)),
        segments=None if record.segments is msgspec.UNSET else _segments(record.segments, record),
        settings=None if record.settings is msgspec.UNSET else _settings(record.settings),
    )


def _overlap(record: CostsRecord) -> Floats | None:
    """Return the overlap times, per stage of the forward or as a table."""
    if record.overlap is None:
        return None
    table = any(isinstance(row, list) for row in record.overlap)
    return pair_table(record.overlap, len(record.forward)) if table else np.array(record.overlap, np.float64)


def _segments(written: SegmentsRecord, record: CostsRecord) -> Segments:
    """Return the segments; they must add up to the times beside them."""
    stages = settings_given({"segments": written.stages})["segments"]
    segments = Segments(stages, written.slowdown, written.delayed_weights)
    segments.require_times(len(record.forward), {op: np.array(getattr(record, op)) for op in segments.times()})
    return segments


def _of_stages(shares: Times, stages: int) -> Floats:
    if len(shares) != stages:
        raise CostError(f"slice attention: {len(shares)} values for {stages} stages", field="slice_attention")
    return np.array(shares)


def _settings(record: SettingsBesideRecord) -> Settings:
    values = msgspec.structs.asdict(record)
    return Settings(**{name: value for name, value in values.items() if value is not msgspec.UNSET})


def _memory(record: CostsRecord, factors: Floats) -> Memory:
    memory = record.memory
    held = (memory.activation, memory.freed_by_weight, memory.static)
    if any(len(sizes) != len(record.forward) for sizes in held) or not record.forward:
        raise CostError(f"memory has {[len(sizes) for sizes in held]} stages, but times have {len(record.forward)}")
    if any(not 0 <= size < np.inf for sizes in held for size in sizes):
        raise CostError("memory of a stage must be at least 0 and finite")
    return Memory(
        activation=np.array(memory.activation),
        freed_by_weight=np.array(memory.freed_by_weight),
        static=np.array(memory.static),
        in_bytes=memory.in_bytes,
        recompute_keeps=NOT_GIVEN if memory.recompute_keeps is msgspec.UNSET else np.array(memory.recompute_keeps),
        offloaded=NOT_GIVEN if memory.offloaded is msgspec.UNSET else np.array(memory.offloaded),
        parameters=NOT_GIVEN if memory.parameters is msgspec.UNSET else np.array(memory.parameters),
        gradients=NOT_GIVEN if memory.gradients is msgspec.UNSET else np.array(memory.gradients),
        factors=factors,
    )


FORMATS = (
    Format(
        name="costs",
        title="Costs, JSON",
        help="Times and memory per stage; also a config file for the same number of stages.",
        ending=".costs.json",
        media="application/json",
        write_costs=costs_json,
        read=lambda text, name, keep: parse_costs_json(text, name=name),
        recognises=is_costs_json,
    ),
)
