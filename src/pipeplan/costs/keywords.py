"""Keywords of functions, as type checkers see them; made by ``python -m docs.build.options --write``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from numpy.typing import NDArray

from pipeplan.costs.layers import Layer
from pipeplan.costs.microbatch_factors import FactorTables
from pipeplan.costs.segments import OpSegments
from pipeplan.costs.settings import Communication, SettingsLike, TimesPer
from pipeplan.costs.work_options import Device
from pipeplan.model import Sharding, Streams

GivenTimes = float | Sequence[float] | NDArray[Any]
"""One number, or one per stage; an array is as good as a list."""

GivenSizes = float | str | Sequence[float | str] | NDArray[Any]
"""The same of sizes: bytes, or texts with a unit such as ``2GiB``."""

GivenLengths = Sequence[float | Sequence[float]] | NDArray[Any]
"""One number per microbatch, or a list of them."""

GivenFactors = GivenLengths | Mapping[str, GivenLengths] | FactorTables
"""One table of factors, or one for each field of ``FactorTables``."""


class SettingsTableKeywords(TypedDict, total=False):
    """Keywords of SettingsTable."""

    ranks: int | None
    microbatches: int | None
    chunks: int | None
    stages: int | None
    forward_times: GivenTimes | None
    backward_times: GivenTimes | None
    backward_input_times: GivenTimes | None
    backward_weight_times: GivenTimes | None
    overlap_times: GivenTimes | GivenLengths | None
    segments: Mapping[str, Any] | Sequence[OpSegments | Mapping[str, Any]] | None
    pair_slowdown: float | None
    delayed_weights: bool | None
    recompute: str | Sequence[int] | None
    recompute_times: GivenTimes | None
    offload: str | Sequence[int] | None
    offload_times: GivenTimes | None
    offload_bandwidth: float | None
    times_per: TimesPer | None
    pad_times: bool | None
    time_unit: str | None
    costs_name: str | None
    layers: Sequence[Layer | Mapping[str, Any]] | None
    layers_per_stage: Sequence[int] | str | None
    unshard_times: GivenTimes | None
    reduce_times: GivenTimes | None
    sharding: Sharding | None
    max_active_stages: int | None
    unshard_lookahead: str | int | Sequence[int] | None
    p2p_time: float | None
    p2p_bytes: float | str | None
    p2p_bandwidth: float | None
    communication: Communication | None
    streams: Streams | None
    machine: str | None
    op_gap: float | None
    message_time: float | None
    step_time: float | None
    memory_limit: float | str | Sequence[float | str] | None
    activation_bytes: GivenSizes | None
    weight_activation_bytes: GivenSizes | None
    recompute_bytes: GivenSizes | None
    offload_bytes: GivenSizes | None
    static_bytes: GivenSizes | None
    parameter_bytes: GivenSizes | None
    gradient_bytes: GivenSizes | None
    microbatch_factors: GivenFactors | None
    lengths: GivenLengths | None
    reference_length: float | None
    attention_share: GivenTimes | None
    attention_model: str | None
    group_size: int | None
    slices: int | None
    slice_attention: GivenTimes | None
    variant: str | None


class ShellSettingsKeywords(SettingsTableKeywords, total=False):
    """Keywords of ShellSettings."""

    config: str | os.PathLike[str] | None


class SettingsKeywords(ShellSettingsKeywords, total=False):
    """Keywords of ConfiguredSettings."""

    settings: SettingsLike | None


class DeviceOptionsKeywords(TypedDict, total=False):
    """Keywords of DeviceOptions."""

    device: Device
    threads: int


class MeasuringOptionsKeywords(DeviceOptionsKeywords, total=False):
    """Keywords of MeasuringOptions."""

    repeats: int


class CalibrationOptionsKeywords(MeasuringOptionsKeywords, total=False):
    """Keywords of CalibrationOptions."""

    sequence: int | None
    microbatch_size: int
