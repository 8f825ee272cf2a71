"""The single table of settings: shape and costs as a user sets them.

A new setting is a field of :class:`SettingsTable`; ``python -m docs.build.options --write`` updates what derives from
it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pipeplan.costs.layers import Layer
from pipeplan.costs.microbatch_factors import (
    LARGEST_FACTOR,
    SMALLEST_FACTOR,
    FactorTable,
    FactorTables,
    Lengths,
    microbatches_of,
)
from pipeplan.costs.options import Options, option, table_of
from pipeplan.costs.overhead import MACHINES, NO_MACHINE
from pipeplan.costs.segments import OpSegments
from pipeplan.costs.values import AT_LEAST_ONE, COUNT, DIVISOR, NOT_NEGATIVE, POSITIVE, RANKS, SHARE, Range
from pipeplan.foundation.errors import CostError, ShapeError
from pipeplan.model import Sharding, Streams

Times = float | tuple[float, ...]
"""One number, one per stage, or one per rank."""

PairTable = float | tuple[float | tuple[float, ...], ...]
"""Times of pairs: one number, one per stage of the forward, or for each of these a list of one per stage of the backward."""

TimesPer = Literal["rank", "stage"]
Communication = Literal["edge", "contended", "streams", "blocking"]


@dataclass(frozen=True, kw_only=True)
class SettingsTable(Options):
    """Fields of :class:`~pipeplan.costs.from_settings.Settings`, each with its documentation.

    Raises
    ------
    ShapeError
        If a count is out of its range.
    CostError
        If a time, size or limit is out of its range.
    UnknownNameError
        If a value is not one of a setting's choices.
    """

    # A table, read by columns: formatted, it would have a line for every argument.
    # fmt: off
    ranks: int | None = option(
        kind="count", group="shape", help="Number of pipeline ranks, p.", default="4", range=RANKS,
        aliases=("num_devices", "num_ranks"), flags=("-p",), slider=(1, 64, 1),
    )
    microbatches: int | None = option(
        kind="count", group="shape", help="Number of microbatches per step, m.", default="8",
        range=COUNT, aliases=("num_batches", "num_microbatches"), flags=("-m", "-b"), slider=(1, 256, 1),
    )
    chunks: int | None = option(
        kind="count", title="Chunks per rank", group="shape", help="Model chunks per rank, v.", default="schedule's",
        range=COUNT, aliases=("num_chunks",), flags=("-v",), slider=(1, 8, 1),
    )
    stages: int | None = option(
        kind="count", group="shape", usual=False, help="Number of stages, ranks x chunks; alone it sets the ranks.",
        range=COUNT, aliases=("num_stages",), flags=("-s",), in_form=False,
    )
    forward_times: Times | None = option(
        kind="per_stage", title="Forward, F", group="times",
        help="Time of a forward pass: one number, one per stage, or one per rank.",
        default="1", unit="time", range=POSITIVE, flags=("-f",), slider=(0.05, 5, 0.05),
    )
    backward_times: Times | None = option(
        kind="per_stage", title="Full backward, B", group="times", help="Time of a full backward pass.",
        default="I + W, or twice the forward", unit="time", range=POSITIVE, flags=("-bw",),
        hint="With I and W empty, each is half of it.",
    )
    backward_input_times: Times | None = option(
        kind="per_stage", title="Backward for inputs, I", group="times", usual=False,
        help="Time of the backward pass for the inputs.",
        default="half the full backward", unit="time", range=POSITIVE, slider=(0.05, 5, 0.05),
        follows=(("backward_times", 0.5), ("forward_times", 1.0)),
    )
    backward_weight_times: Times | None = option(
        kind="per_stage", title="Backward for weights, W", group="times", usual=False,
        help="Time of the backward pass for the weights.",
        default="half the full backward", unit="time", range=POSITIVE, slider=(0.05, 5, 0.05),
        follows=(("backward_times", 0.5), ("forward_times", 1.0)),
    )
    overlap_times: PairTable | None = option(
        kind="pair_times", title="Overlapped F and B", group="details",
        help="Time of an overlapped forward and backward pass; a list has one per stage of the forward.",
        default="their sum", unit="time", range=POSITIVE,
    )
    segments: tuple[OpSegments, ...] | None = option(
        kind="segments", title="Segments of F, I and W", group="details", shell="none", default="none",
        help="Computing and communicating parts of F, I and W, which determine the times of overlapped pairs.",
        hint='As in a config file: {"forward": [{"compute": 1.2}, {"all_to_all": 0.4}], "backward_input": ...}.',
    )
    pair_slowdown: float | None = option(
        kind="number", title="Slowdown beside communication", group="details", shell="none", default="1", range=AT_LEAST_ONE,
        help="Factor on computation in an overlapped pair while its segments communicate.",
    )
    delayed_weights: bool = option(
        False, kind="flag", title="Delayed weights", group="details", shell="none",
        help="Let no communication of segments wait for weight gradients.",
        hint="No communication of segments waits for weight gradients.",
    )
    recompute: str | tuple[int, ...] = option(
        "none", kind="stages", group="details",
        help="Stages that recompute their activations before the backward pass: none, all, or a list such as 0-3,6.",
        hint="none, all, or a list of stages such as 0-3,6.", longest=200_000,
    )
    recompute_times: Times | None = option(
        kind="per_stage", title="Recomputation, R", group="details", help="Time of a recomputation.",
        default="the forward time", unit="time", range=POSITIVE,
    )
    offload: str | tuple[int, ...] = option(
        "none", kind="stages", group="details", shell="none",
        help="Stages that offload activations to the host until the backward pass: none, all, or a list such as 0-3,6.",
        hint="none, all, or a list of stages such as 0-3,6; needs a bandwidth or a time.", longest=200_000,
    )
    offload_times: Times | None = option(
        kind="per_stage", title="Copy to the host", group="details", shell="none",
        help="Time to copy the offloaded activations of a microbatch to the host, and again to copy them back.",
        default="offloaded bytes / bandwidth", unit="time", range=NOT_NEGATIVE,
    )
    offload_bandwidth: float | None = option(
        kind="number", title="Bandwidth to the host, bytes per unit of time", group="details", shell="none",
        help="Bandwidth between a rank and its host in each direction, in bytes per unit of time.",
        default="none", unit="bytes in a unit of time", range=POSITIVE,
    )
    times_per: TimesPer = option(
        "rank", kind="choice", title="A single time is for", group="details", choices=get_args(TimesPer),
        help="Scope of a time given as one number, or as one per rank: all chunks of a rank together (rank), or each stage.",
        hint="All chunks of a rank together, or each stage.",
    )
    pad_times: bool = option(
        False, kind="flag", title="Pad short lists", group="details",
        help="Repeat the last value of a list that is too short, and truncate one that is too long.",
        hint="Repeat the last value of a list that is too short; truncate a longer one.",
    )
    time_unit: str = option(
        "", kind="text", title="Unit of the times", group="details", help="Unit of all times, such as us, ms or s.",
        default="none", hint="Such as us or ms.", longest=12,
    )
    costs_name: str = option(
        "", kind="text", title="Name of the costs", group="details", shell="none", in_form=False, longest=80,
        help="Name of the costs in pictures.", default="the config file's name",
    )
    layers: tuple[Layer, ...] | None = option(
        kind="layers", group="details", in_form=False,
        help="Costs per layer instead of per stage; in the shell, a file that lists them.", default="none",
    )
    layers_per_stage: tuple[int, ...] | str | None = option(
        kind="stage_layers", title="Layers of each stage", group="details", in_form=False, longest=200_000,
        help="Number of layers of each stage, or a trainer's layout such as Et*3|t*4|t*3L.",
        default="the split with the fastest slowest stage",
    )
    unshard_times: Times | None = option(
        kind="per_stage", title="Gathering parameters", group="details", shell="schedules",
        help="Time to gather sharded parameters over their data-parallel group (UNSHARD): for all chunks of a rank "
        "together, or one per stage.",
        default="0", unit="time", range=NOT_NEGATIVE,
    )
    reduce_times: Times | None = option(
        kind="per_stage", title="Reducing gradients", group="details", shell="schedules",
        help="Time to reduce gradients over their data-parallel group (REDUCE_GRAD): for all chunks of a rank together, "
        "or one per stage.",
        default="0", unit="time", range=NOT_NEGATIVE,
    )
    sharding: Sharding | None = option(
        kind="choice", title="Collectives of sharded stages", group="details", shell="schedules", choices=get_args(Sharding),
        help="Places of UNSHARD, RESHARD and REDUCE_GRAD in schedules: none, by PyTorch's rule (pytorch), or by "
        "Megatron-LM's (megatron).",
        default="pytorch if one of their times or sizes is set; a file keeps its own",
        hint="none; pytorch: FSDP; megatron: distributed optimizer. Automatic: pytorch if one of their times or sizes is "
        "set.",
    )
    max_active_stages: int | None = option(
        kind="count", title="Stages kept gathered", group="details", shell="none", default="3", range=COUNT,
        help="Number of next stages that PyTorch's rule keeps gathered on a rank.",
    )
    unshard_lookahead: str | None = option(
        kind="text", keyword="str | int | Sequence[int]", title="Stages gathered ahead", group="details", shell="none",
        default="full",
        longest=200,
        help="Number of these that PyTorch's rule gathers ahead: full for all, auto for rank + 2, one number, or one per "
        "rank such as 2,3,4,4.",
        hint="full, auto, one number, or one per rank such as 2,3,4,4.",
    )
    p2p_time: float = option(
        0.0, kind="number", title="Transfer", group="times", help="Latency of a transfer between ranks.",
        unit="time", range=NOT_NEGATIVE, aliases=("p2p_latency",), slider=(0, 2, 0.05),
    )
    p2p_bytes: float = option(
        0.0, kind="number", title="Bytes of a transfer", group="details", help="Size of a transfer, such as 64MiB.",
        unit="bytes", range=NOT_NEGATIVE,
    )
    p2p_bandwidth: float | None = option(
        kind="number", title="Bandwidth, bytes per unit of time", group="details",
        help="Bandwidth of a link between ranks, in bytes per unit of time.",
        default="unlimited", unit="bytes in a unit of time", range=POSITIVE,
    )
    communication: Communication = option(
        "edge", kind="choice", title="A transfer", group="details", choices=get_args(Communication),
        help="Model of transfers: each delays only its receiver (edge), occupies the link (contended), runs in order on "
        "communication streams (streams), or occupies both ranks (blocking).",
        hint="edge: delays only the receiver; contended: one transfer at a time per link; streams: in order, beside the "
        "computation; blocking: occupies both ranks.",
    )
    streams: Streams | None = option(
        kind="choice", title="Communication streams", group="details", choices=get_args(Streams), default="rank",
        help="Communication streams with --communication streams: one per rank (PyTorch's default), one per direction "
        "(PyTorch 2.14.1: pipeline_per_direction_p2p), or one per edge (2.15: pipeline_per_edge_p2p).",
        hint="One per rank, per direction, or per edge (pair of ranks).", only_with=("communication", "streams"),
    )
    machine: str = option(
        NO_MACHINE, kind="choice", group="details", choices=(NO_MACHINE, *MACHINES),
        help="Overhead preset fitted to runs on this machine; needs a time unit.",
        hint="Overhead preset fitted to runs on this machine; needs a unit of the times.",
    )
    op_gap: float | None = option(
        kind="number", title="Overhead per op", group="details", default="0, or the machine's", unit="time",
        help="Fixed overhead before each op: kernel launches and the framework's own work.",
        range=NOT_NEGATIVE,
    )
    message_time: float | None = option(
        kind="number", title="Overhead per message", group="details", default="0, or the machine's", unit="time",
        help="Fixed overhead per message, paid by both ranks.", range=NOT_NEGATIVE,
    )
    step_time: float | None = option(
        kind="number", title="Time after the last op", group="details", default="0, or the machine's", unit="time",
        help="Time added after the last op, outside the makespan: optimizer, barrier, data-parallel reduction.",
        range=NOT_NEGATIVE,
    )
    memory_limit: float | str | tuple[float | str, ...] | None = option(
        kind="limit", title="Memory limit per rank", group="memory", default="none", unit="bytes or activations",
        help="Memory limit: bytes, a size such as 12GiB, or activations such as 8act; one for all ranks, or one per rank.",
        hint="12GiB, bytes or 8act.",
    )
    activation_bytes: Times | None = option(
        kind="per_stage", group="memory", default="none", unit="bytes", range=DIVISOR,
        help="Activation memory of one microbatch, such as 2GiB: for all chunks of a rank together, or one per stage.",
    )
    weight_activation_bytes: Times | None = option(
        kind="per_stage", title="Part that only W frees", group="held", default="all", unit="bytes",
        help="Part of the activation bytes that only the backward pass for the weights frees.", range=NOT_NEGATIVE,
    )
    recompute_bytes: Times | None = option(
        kind="per_stage", title="Part kept when recomputing", group="held", shell="schedules", default="0",
        unit="bytes",
        help="Part of the activation bytes that a recomputed stage keeps: its input.",
        range=NOT_NEGATIVE,
    )
    offload_bytes: Times | None = option(
        kind="per_stage", title="Part that is offloaded", group="held", shell="none", default="all", unit="bytes",
        help="Part of the activation bytes that an offloaded stage copies to the host.",
        range=NOT_NEGATIVE,
    )
    static_bytes: Times | None = option(
        kind="per_stage", group="held", default="0", unit="bytes", range=NOT_NEGATIVE,
        help="Memory of parameters, gradients and optimizer state.",
    )
    parameter_bytes: Times | None = option(
        kind="per_stage", title="Gathered parameters", group="held", shell="none", default="0",
        unit="bytes", range=NOT_NEGATIVE,
        help="Memory of gathered parameters, held from UNSHARD to RESHARD beside the static bytes: for all chunks of a "
        "rank together, or one per stage.",
    )
    gradient_bytes: Times | None = option(
        kind="per_stage", title="Unreduced gradients", group="held", shell="none", default="0",
        unit="bytes", range=NOT_NEGATIVE,
        help="Memory of the whole gradients of a stage, held from the start of its first weight gradient until the rank has "
        "waited for their REDUCE_GRAD, beside the static bytes.",
    )
    microbatch_factors: FactorTable | FactorTables | None = option(
        kind="per_microbatch", title="Factors", group="microbatches", default="all 1", unit="times",
        range=Range(SMALLEST_FACTOR, most=LARGEST_FACTOR),
        help="Factor of each microbatch on the times of its ops and on its bytes; or, in the shell as a file, such a list "
        "per stage or rank, or different ones for times and bytes.",
        hint="One number per microbatch: how many times the costs it takes.",
    )
    lengths: Lengths | None = option(
        kind="lengths", title="Tokens", group="microbatches", default="none", unit="tokens", range=POSITIVE,
        help="Tokens of each microbatch, from which its factors follow; in the shell, a file with a line per microbatch. "
        "Several numbers in a line are documents that do not attend to each other.",
        hint="One number per microbatch.",
    )
    reference_length: float | None = option(
        kind="number", title="Tokens of the costs", group="microbatches", shell="none",
        default="the mean of the lengths", unit="tokens",
        help="Tokens of the microbatch that times and bytes are for.", range=POSITIVE,
    )
    attention_share: Times | None = option(
        kind="per_stage", title="Share of attention", group="microbatches", shell="none", default="0",
        unit="shares", range=SHARE,
        help="Share of the forward time that grows with the square of the length, at the reference length: one number, or "
        "one per stage.",
    )
    attention_model: str | None = option(
        kind="text", title="Model of the share", group="microbatches", shell="none", default="none", longest=200,
        help="Model whose FLOPs determine the share of attention, such as llama3-8b.",
    )
    group_size: int | None = option(
        kind="count", group="more", help="Microbatches per group of an interleaved schedule or kfkb.",
        default="the schedule's", range=COUNT, flags=("-g",), hint="For interleaved schedules and kfkb.",
    )
    slices: int | None = option(
        kind="count", group="more", help="Slices per sequence, for seq1f1b, slimpipe, svpp and mepipe.",
        default="the schedule's", range=COUNT, hint="Slices per sequence, for seq1f1b, slimpipe, svpp and mepipe.",
    )
    slice_attention: Times | None = option(
        kind="per_stage", title="Attention of slices", group="more", shell="none", default="0",
        unit="shares", range=SHARE,
        help="Share of a sequence's forward time that is causal attention, which makes later slices longer: one number, or "
        "one per stage; 0: slices take equally long, as if ranks exchange attention (SlimPipe).",
    )
    variant: str | None = option(
        kind="text", group="more", shell="schedules", help="Variant of the schedule.",
        default="the first",
    )
    # fmt: on

    @property
    def microbatch_count(self) -> int | None:
        """Number of microbatches: ``microbatches`` if set, else that of the factors or lengths; None if none is set."""
        if self.microbatches is not None:
            return self.microbatches
        if self.lengths is not None:
            return len(self.lengths)
        return None if self.microbatch_factors is None else microbatches_of(self.microbatch_factors)

    @property
    def transfer_streams(self) -> Streams | None:
        """Communication streams of each rank if transfers run on streams, else None.

        Raises
        ------
        CostError
            If streams are set, but another model of transfers is.
        """
        if self.communication == "streams":
            return self.streams or "rank"
        if self.streams is not None:
            raise CostError(
                f"streams is set to {self.streams}, which applies only with communication=streams; communication is "
                f"{self.communication}",
                field="streams",
            )
        return None

    @property
    def sharding_rule(self) -> Sharding | None:
        """Rule that places collectives if one is chosen, by itself or by an option of PyTorch's; else None.

        Raises
        ------
        CostError
            If an option of PyTorch's rule is set for another rule.
        """
        for name in ("max_active_stages", "unshard_lookahead"):
            value = getattr(self, name)
            if value is not None and self.sharding not in (None, "pytorch"):
                raise CostError(f"{name} {value} needs sharding pytorch, not {self.sharding}", field=name)
            if value is not None:
                return "pytorch"
        return self.sharding

    @property
    def is_sharded(self) -> bool:
        """True if a time or size of the collectives of sharded stages is set."""
        costs = self.unshard_times, self.reduce_times, self.parameter_bytes, self.gradient_bytes
        return any(value is not None for value in costs)

    def pipeline_ranks(self, chunks: int) -> int:
        """Return the number of ranks: ``ranks`` if set, else the stages divided by the chunks, else 4.

        Raises
        ------
        ShapeError
            If ranks, chunks and stages contradict each other.
        """
        if self.stages is None:
            return 4 if self.ranks is None else self.ranks
        ranks = self.ranks if self.ranks is not None else max(self.stages // chunks, 1)
        if ranks * chunks != self.stages:
            raise ShapeError(
                f"{self.stages} stages are not {ranks} ranks x {chunks} chunk(s): set at most two of the three",
                field="stages",
            )
        return ranks


SettingsLike = SettingsTable | Mapping[str, Any] | str | os.PathLike[str]
"""Settings; a mapping with the keys of a config file; or a config file."""


@dataclass(frozen=True, kw_only=True)
class ShellSettings(SettingsTable):
    """Settings, and a config file with some of them, as commands take them."""

    config: str | os.PathLike[str] | None = option(
        kind="file",
        group="output",
        flags=("-c",),
        help="YAML, TOML or JSON file with any of these settings, or the name of bundled costs (see pipeplan list costs); "
        "options override it.",
    )


@dataclass(frozen=True, kw_only=True)
class ConfiguredSettings(ShellSettings):
    """Settings as functions take them: a value, a mapping or a file with some of them, and keywords that override it."""

    settings: SettingsLike | None = option(
        kind="object",
        group="output",
        help="Settings, a mapping with some of them, or a config file; the other keywords override it.",
    )


SETTINGS = table_of(SettingsTable)
"""All settings by name."""

SETTING_NAMES = tuple(SETTINGS)
