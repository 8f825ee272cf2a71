"""A configuration to train with: everything that a trainer is told and a prediction depends on."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal, get_args

from pipeplan.errors import InputError, ShapeError, UnknownNameError
from pipeplan.workload import RECOMPUTE, Precision

Zero = Literal[0, 1, 2, 3]


_COUNTS = (
    *("sequence", "global_batch", "microbatch_size"),
    *("tensor", "pipeline", "context", "data", "expert", "expert_tensor", "chunks"),
)


def _require_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ShapeError(f"{name.replace('_', ' ')} must be a whole number of at least 1, not {value!r}", field=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Degrees, batch, schedule, layout and what is computed again or moved away.

    Attributes
    ----------
    sequence, global_batch
        Tokens in a sequence, and sequences in a step.
    microbatch_size
        Sequences in a microbatch of one replica.
    tensor, pipeline, context, data, expert, expert_tensor
        The degrees t, p, c, d, e and etp. GPUs: t p c d; e and etp are made of t, c and d.
    chunks
        v.
    schedule
        A strategy's name; ``1f1b`` also where there is one rank.
    group_size
        Of an interleaved schedule; None: its default.
    in_flight
        Activations that a rank may hold under a schedule that is made for a memory limit (``zb-auto``: p for ZB-1p, 2p for
        ZB-2p); None: the schedule's default.
    layers
        Transformer layers on each stage, embedding, head, loss and MTP apart (these stand on the first and the last
        stage); None: as even as they go, earlier stages with more.
    sequence_parallel
        Beside tensor parallelism.
    zero
        What the data group shards: 1 optimizer state, 2 gradients too, 3 parameters too (FSDP).
    precision
        Of the matrix products.
    recompute
        Modules that every stage computes again.
    recompute_by_stage
        The same per stage, where they differ; None: ``recompute`` everywhere.
    offload
        Share of its kept bytes that each stage moves to the host; one number, or one per stage.
    software
        The trainer whose kernels and overlaps are assumed, by its name in the table of software.
    op_gap
        Seconds that each op loses besides; None: what the software is known to lose.

    Raises
    ------
    ShapeError
        For less than one of anything, and lists that are not of as many stages.
    UnknownNameError
        For a precision or a module to recompute that nobody knows.
    InputError
        For a share, a stage of ZeRO or a limit that cannot be.
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
    precision: Precision = "bf16"
    recompute: tuple[str, ...] = ()
    recompute_by_stage: tuple[tuple[str, ...], ...] | None = None
    offload: float | tuple[float, ...] = 0.0
    software: str = "megatron-core"
    op_gap: float | None = None

    def __post_init__(self) -> None:
        for name in _COUNTS:
            _require_count(name, getattr(self, name))
        if self.group_size is not None:
            _require_count("group_size", self.group_size)
        if self.zero not in get_args(Zero):
            raise InputError(f"zero is 0, 1, 2 or 3, not {self.zero!r}", field="zero")
        if self.precision not in get_args(Precision):
            raise UnknownNameError("precision", str(self.precision), get_args(Precision), field="precision")
        if self.in_flight is not None and not self.in_flight > 0:
            raise InputError(f"in_flight is more than 0 activations, not {self.in_flight!r}", field="in_flight")
        if self.op_gap is not None and not 0 <= self.op_gap < inf:
            raise InputError(f"op_gap is at least 0 and finite seconds, not {self.op_gap!r}", field="op_gap")
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
                    f"{name}: {len(values)} values for {self.stages} stages ({self.pipeline} ranks of {self.chunks} "
                    "chunks)",
                    field=name,
                )
        for modules in (self.recompute, *(self.recompute_by_stage or ())):
            for module in modules:
                if module not in RECOMPUTE:
                    raise UnknownNameError("module to recompute", str(module), RECOMPUTE, field="recompute")
        for share in self.offload if isinstance(self.offload, tuple) else (self.offload,):
            if not 0 <= share <= 1:
                raise InputError(f"offload is a share from 0 to 1, not {share!r}", field="offload")

    @property
    def gpus(self) -> int:
        """Number of GPUs that it runs on."""
        return self.tensor * self.pipeline * self.context * self.data

    @property
    def microbatches(self) -> int:
        """m: of a step, in one pipeline."""
        return self.global_batch // (self.data * self.microbatch_size)

    @property
    def stages(self) -> int:
        """S."""
        return self.pipeline * self.chunks

    @property
    def gathers_weights(self) -> bool:
        """Whether every microbatch gathers sharded weights and scatters gradients; beside a pipeline, a step does once."""
        return self.zero >= 3 and self.pipeline == 1

    @property
    def expert_data(self) -> int:
        """Replicas of each expert: the ranks of a stage over e and etp."""
        return self.tensor * self.context * self.data // (self.expert * self.expert_tensor)
