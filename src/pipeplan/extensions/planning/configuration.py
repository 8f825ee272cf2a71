"""Training configuration: every setting that a trainer needs and that a prediction depends on."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf
from typing import Literal, get_args

from pipeplan.extensions.planning.workload import RECOMPUTE, Precision
from pipeplan.foundation.errors import InputError, ShapeError, UnknownNameError
from pipeplan.foundation.records import Record

Zero = Literal[0, 1, 2, 3]


_COUNTS = (
    *("sequence", "global_batch", "microbatch_size"),
    *("tensor", "pipeline", "context", "data", "expert", "expert_tensor", "chunks", "replicate"),
)
_OPTIONAL_COUNTS = {"group_size": None, "lora_rank": 0, "document": None}
"""Counts that may be left out, and their values then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Training configuration: parallel degrees, batch, schedule, layout, recomputation and offload.

    Attributes
    ----------
    sequence, global_batch
        Tokens per sequence, and sequences per step.
    microbatch_size
        Sequences per microbatch on one replica.
    tensor, pipeline, context, data, expert, expert_tensor
        Parallel degrees t, p, c, d, e and etp. The number of GPUs is t p c d; expert groups are formed from the ranks of t,
        c and d.
    chunks
        Chunks (virtual stages) per rank, v.
    schedule
        Name of a strategy; ``1f1b`` for a single pipeline rank, too.
    group_size
        Microbatches per group of an interleaved schedule; None: the schedule's default.
    in_flight
        Maximum activations per rank for a schedule that is built for a memory limit (``zb-auto``: p for ZB-1p, 2p for
        ZB-2p); None: the schedule's default.
    layers
        Transformer layers of each stage, without embedding, head, loss and MTP, which are on the first and the last stage;
        None: an even split, with the remainder on the earlier stages.
    sequence_parallel
        Whether sequence parallelism is used together with tensor parallelism.
    zero
        What the data-parallel group shards: 1 the optimizer state, 2 also gradients, 3 also parameters (FSDP).
    replicate
        Number of whole copies of what is sharded: ranks of the data and context groups shard within as many equal parts, and
        gradients are summed across them (HSDP).
    lora_rank
        Rank of low-rank adapters, the only parameters that are trained then (LoRA); 0: all parameters are trained.
    document
        Tokens of each of the documents that are packed into a sequence; None: one document per sequence.
    precision
        Number format of the matrix products.
    recompute
        Modules that every stage recomputes in the backward.
    recompute_by_stage
        Recomputed modules of each stage, if stages differ; None: ``recompute`` on every stage.
    offload
        Fraction of its activation bytes that each stage moves to the host; one number, or one per stage.
    software
        Trainer whose kernels and overlaps are assumed: a name of ``SOFTWARE``.
    op_gap
        Overhead between two ops of a rank, in seconds; None: the trainer's known overhead.

    Raises
    ------
    ShapeError
        If a count is below 1, or a per-stage list does not have one entry per stage.
    UnknownNameError
        If the precision or a module to recompute is unknown.
    InputError
        If an offloaded fraction, a ZeRO stage or a limit is out of range.
    """

    sequence: int
    global_batch: int
    microbatch_size: int = 1
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    data: int = 1
    expert: int = 1
    expert_tensor: int = 1
    chunks: int = 1
    schedule: str = "1f1b"
    group_size: int | None = None
    in_flight: float | None = None
    layers: tuple[int, ...] | None = None
    sequence_parallel: bool = False
    zero: Zero = 1
    replicate: int = 1
    lora_rank: int = 0
    document: int | None = None
    precision: Precision = "bf16"
    recompute: tuple[str, ...] = ()
    recompute_by_stage: tuple[tuple[str, ...], ...] | None = None
    offload: float | tuple[float, ...] = 0.0
    software: str = "megatron-core"
    op_gap: float | None = None

    def __post_init__(self) -> None:
        for name in (*_COUNTS, *_OPTIONAL_COUNTS):
            value = getattr(self, name)
            if name in _OPTIONAL_COUNTS and value == _OPTIONAL_COUNTS[name]:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ShapeError(f"{name.replace('_', ' ')} must be an integer >= 1, got {value!r}", field=name)
        if self.zero not in get_args(Zero):
            raise InputError(f"invalid zero {self.zero!r}: expected 0, 1, 2 or 3", field="zero")
        if self.precision not in get_args(Precision):
            raise UnknownNameError("precision", str(self.precision), get_args(Precision), field="precision")
        if self.data * self.context % self.replicate:
            raise ShapeError(
                f"replicate {self.replicate} does not divide data {self.data} x context {self.context}",
                field="replicate",
            )
        if self.in_flight is not None and not self.in_flight > 0:
            raise InputError(
                f"invalid in_flight {self.in_flight!r}: expected a number of activations above 0", field="in_flight"
            )
        if self.op_gap is not None and not 0 <= self.op_gap < inf:
            raise InputError(f"invalid op_gap {self.op_gap!r}: expected finite seconds >= 0", field="op_gap")
        self._check_stages()

    def _check_stages(self) -> None:
        by_stage = {
            "layers": self.layers,
            "recompute_by_stage": self.recompute_by_stage,
            "offload": self.offload if isinstance(self.offload, tuple) else None,
        }
        for name, values in by_stage.items():
            if values is not None and len(values) != self.stages:
                raise ShapeError(
                    f"{name}: {len(values)} values for {self.stages} stages "
                    f"({self.pipeline} ranks x {self.chunks} chunks)",
                    field=name,
                )
        for modules in (self.recompute, *(self.recompute_by_stage or ())):
            for module in modules:
                if module not in RECOMPUTE:
                    raise UnknownNameError("module to recompute", str(module), RECOMPUTE, field="recompute")
        for share in self.offload if isinstance(self.offload, tuple) else (self.offload,):
            if not 0 <= share <= 1:
                raise InputError(f"invalid offload {share!r}: expected a fraction from 0 to 1", field="offload")

    @property
    def gpus(self) -> int:
        """Number of GPUs."""
        return self.tensor * self.pipeline * self.context * self.data

    @property
    def microbatches(self) -> int:
        """Number of microbatches per step in one pipeline, m."""
        return self.global_batch // (self.data * self.microbatch_size)

    @property
    def stages(self) -> int:
        """Number of stages, S."""
        return self.pipeline * self.chunks

    @property
    def most_offloaded(self) -> float:
        """Fraction of its activations that a stage offloads to the host, of the stage that offloads the most."""
        return max(self.offload, default=0.0) if isinstance(self.offload, tuple) else self.offload

    @property
    def expert_data(self) -> int:
        """Number of replicas of each expert: the ranks of a stage divided by e etp."""
        return self.tensor * self.context * self.data // (self.expert * self.expert_tensor)

    @property
    def shards(self) -> int:
        """Number of ranks that share one copy of a stage's sharded state."""
        return self.data * self.context // self.replicate

    @property
    def expert_shards(self) -> int:
        """Number of ranks that share one copy of an expert's sharded state."""
        return max(1, self.expert_data // self.replicate)

    @property
    def expert_replicate(self) -> int:
        """Number of copies of an expert's sharded state."""
        return max(1, self.expert_data // self.expert_shards)

    @property
    def record(self) -> ConfigurationRecord:
        """Settings for JSON."""
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        return ConfigurationRecord(**settings, gpus=self.gpus, microbatches=self.microbatches)


class ConfigurationRecord(Record, frozen=True, kw_only=True):
    """Settings of a configuration, and the numbers of GPUs and microbatches that follow from them."""

    # In the JSON of a configuration, none of these may be left out: a configuration's own fields have defaults.
    sequence: int
    global_batch: int
    microbatch_size: int
    tensor: int
    pipeline: int
    context: int
    data: int
    expert: int
    expert_tensor: int
    chunks: int
    schedule: str
    group_size: int | None
    in_flight: float | None
    layers: tuple[int, ...] | None
    sequence_parallel: bool
    zero: Zero
    replicate: int
    lora_rank: int
    document: int | None
    precision: Precision
    recompute: tuple[str, ...]
    recompute_by_stage: tuple[tuple[str, ...], ...] | None
    offload: float | tuple[float, ...]
    software: str
    op_gap: float | None
    gpus: int
    microbatches: int

    def configuration(self) -> Configuration:
        """Return the configuration that this is the record of."""
        return Configuration(**{field.name: getattr(self, field.name) for field in fields(Configuration)})
