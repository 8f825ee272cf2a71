"""Settings of shape and costs as the record of an answer."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from pipeplan.answers.answers import AnswerRecord
from pipeplan.costs import (
    Communication,
    FactorTable,
    FactorTables,
    Layer,
    Lengths,
    OpSegments,
    PairTable,
    Times,
    TimesPer,
)
from pipeplan.model import Sharding, Streams


class SettingsRecord(AnswerRecord, frozen=True, kw_only=True):
    """Every setting of :class:`pipeplan.costs.SettingsTable`, in its order; one without a value is left out of the JSON.

    A layout has numbers in place of its text.
    """

    ranks: int | UnsetType | None = UNSET
    microbatches: int | UnsetType | None = UNSET
    chunks: int | UnsetType | None = UNSET
    stages: int | UnsetType | None = UNSET
    forward_times: Times | UnsetType | None = UNSET
    backward_times: Times | UnsetType | None = UNSET
    backward_input_times: Times | UnsetType | None = UNSET
    backward_weight_times: Times | UnsetType | None = UNSET
    overlap_times: PairTable | UnsetType | None = UNSET
    segments: tuple[OpSegments, ...] | UnsetType | None = UNSET
    pair_slowdown: float | UnsetType | None = UNSET
    delayed_weights: bool
    recompute: str | tuple[int, ...]
    recompute_times: Times | UnsetType | None = UNSET
    offload: str | tuple[int, ...]
    offload_times: Times | UnsetType | None = UNSET
    offload_bandwidth: float | UnsetType | None = UNSET
    times_per: TimesPer
    pad_times: bool
    time_unit: str
    costs_name: str
    layers: tuple[Layer, ...] | UnsetType | None = UNSET
    layers_per_stage: tuple[int, ...] | UnsetType | None = UNSET
    unshard_times: Times | UnsetType | None = UNSET
    reduce_times: Times | UnsetType | None = UNSET
    sharding: Sharding | UnsetType | None = UNSET
    max_active_stages: int | UnsetType | None = UNSET
    unshard_lookahead: str | UnsetType | None = UNSET
    p2p_time: float
    p2p_bytes: float
    p2p_bandwidth: float | UnsetType | None = UNSET
    communication: Communication
    streams: Streams | UnsetType | None = UNSET
    machine: str
    op_gap: float | UnsetType | None = UNSET
    message_time: float | UnsetType | None = UNSET
    step_time: float | UnsetType | None = UNSET
    memory_limit: float | str | tuple[float | str, ...] | UnsetType | None = UNSET
    activation_bytes: Times | UnsetType | None = UNSET
    weight_activation_bytes: Times | UnsetType | None = UNSET
    recompute_bytes: Times | UnsetType | None = UNSET
    offload_bytes: Times | UnsetType | None = UNSET
    static_bytes: Times | UnsetType | None = UNSET
    parameter_bytes: Times | UnsetType | None = UNSET
    gradient_bytes: Times | UnsetType | None = UNSET
    microbatch_factors: FactorTable | FactorTables | UnsetType | None = UNSET
    lengths: Lengths | UnsetType | None = UNSET
    reference_length: float | UnsetType | None = UNSET
    attention_share: Times | UnsetType | None = UNSET
    attention_model: str | UnsetType | None = UNSET
    group_size: int | UnsetType | None = UNSET
    slices: int | UnsetType | None = UNSET
    slice_attention: Times | UnsetType | None = UNSET
    variant: str | UnsetType | None = UNSET
