"""Keywords of functions, as type checkers see them; made by ``python -m docs.build.options --write``."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from pipeplan.costs import SettingsKeywords

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias, TypeVar

    from numpy.typing import NDArray

    from pipeplan.answers.published import NeedsLike
    from pipeplan.costs import (
        Communication,
        GivenFactors,
        GivenLengths,
        GivenSizes,
        GivenTimes,
        Layer,
        OpSegments,
        SettingsLike,
        TimesPer,
    )
    from pipeplan.foundation.names import TrainerName
    from pipeplan.model import Sharding, Streams

    Value = TypeVar("Value")
    Varied: TypeAlias = Value | Sequence[Value] | Mapping[str, Value] | NDArray[Any]


class AllowOptionsKeywords(TypedDict, total=False):
    """Keywords of AllowOptions."""

    allow: NeedsLike | None


class CheckOptionsKeywords(TypedDict, total=False):
    """Keywords of CheckOptions."""

    trainer: TrainerName | str | None
    trainer_version: str | None


class TrainingKeywords(TypedDict, total=False):
    """Keywords of Training."""

    mtp_layers: int
    microbatch_size: int
    sequence_length: int | None
    data_parallel: int
    csv: str | None
    trainer_version: str | None


class RearrangementOptionsKeywords(TypedDict, total=False):
    """Keywords of RearrangementOptions."""

    split_backward: bool
    retime: bool
    merge_backward: bool


class ExportOptionsKeywords(RearrangementOptionsKeywords, TrainingKeywords, total=False):
    """Keywords of ExportOptions."""


class SweepOptionsKeywords(TypedDict, total=False):
    """Keywords of SweepOptions."""

    workers: int
    store: str | os.PathLike[str] | None


class CompareKeywords(SettingsKeywords, AllowOptionsKeywords, total=False):
    """Options and settings of :func:`pipeplan.compare`."""


class ExplainKeywords(SettingsKeywords, AllowOptionsKeywords, total=False):
    """Options and settings of :func:`pipeplan.explain`."""


class CheckKeywords(SettingsKeywords, CheckOptionsKeywords, total=False):
    """Options and settings of :func:`pipeplan.check`."""


class ExportKeywords(SettingsKeywords, ExportOptionsKeywords, total=False):
    """Options and settings of :func:`pipeplan.export`."""


class SweepKeywords(SweepOptionsKeywords, total=False):
    """Keywords of a study: each setting has one value, or a list of them."""

    ranks: Varied[int | None]
    microbatches: Varied[int | None]
    chunks: Varied[int | None]
    stages: Varied[int | None]
    forward_times: Varied[GivenTimes | None]
    backward_times: Varied[GivenTimes | None]
    backward_input_times: Varied[GivenTimes | None]
    backward_weight_times: Varied[GivenTimes | None]
    overlap_times: Varied[GivenTimes | GivenLengths | None]
    segments: Varied[Mapping[str, Any] | Sequence[OpSegments | Mapping[str, Any]] | None]
    pair_slowdown: Varied[float | None]
    delayed_weights: Varied[bool | None]
    recompute: Varied[str | Sequence[int] | None]
    recompute_times: Varied[GivenTimes | None]
    offload: Varied[str | Sequence[int] | None]
    offload_times: Varied[GivenTimes | None]
    offload_bandwidth: Varied[float | None]
    times_per: Varied[TimesPer | None]
    pad_times: Varied[bool | None]
    time_unit: Varied[str | None]
    costs_name: Varied[str | None]
    layers: Varied[Sequence[Layer | Mapping[str, Any]] | None]
    layers_per_stage: Varied[Sequence[int] | str | None]
    unshard_times: Varied[GivenTimes | None]
    reduce_times: Varied[GivenTimes | None]
    sharding: Varied[Sharding | None]
    max_active_stages: Varied[int | None]
    unshard_lookahead: Varied[str | int | Sequence[int] | None]
    p2p_time: Varied[float | None]
    p2p_bytes: Varied[float | str | None]
    p2p_bandwidth: Varied[float | None]
    communication: Varied[Communication | None]
    streams: Varied[Streams | None]
    machine: Varied[str | None]
    op_gap: Varied[float | None]
    message_time: Varied[float | None]
    step_time: Varied[float | None]
    memory_limit: Varied[float | str | Sequence[float | str] | None]
    activation_bytes: Varied[GivenSizes | None]
    weight_activation_bytes: Varied[GivenSizes | None]
    recompute_bytes: Varied[GivenSizes | None]
    offload_bytes: Varied[GivenSizes | None]
    static_bytes: Varied[GivenSizes | None]
    parameter_bytes: Varied[GivenSizes | None]
    gradient_bytes: Varied[GivenSizes | None]
    microbatch_factors: Varied[GivenFactors | None]
    lengths: Varied[GivenLengths | None]
    reference_length: Varied[float | None]
    attention_share: Varied[GivenTimes | None]
    attention_model: Varied[str | None]
    group_size: Varied[int | None]
    slices: Varied[int | None]
    slice_attention: Varied[GivenTimes | None]
    variant: Varied[str | None]
    config: str | os.PathLike[str] | None
    settings: SettingsLike | None
