"""What a model's stages cost on a machine, and the config file that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeplan.costs import Settings, Spread, write_costs_file
from pipeplan.model import Placement
from pipeplan.runtime.stage_measurement import StageProfile


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What a model's stages cost on a machine.

    Attributes
    ----------
    stages
        In the order of the model.
    placement
        Which rank holds each stage; the ranks measured at the same time where ``together``.
    p2p_time
        Milliseconds from when a rank sends a stage's output until another rank has it, with what that takes from both; None
        where it was not measured.
    op_gap, message_time
        Milliseconds that a rank loses before every op, and for every message that it sends or receives; None where it was
        not measured.
    model, device, dtype, threads, torch_version, repeats, together
        What was measured, on what, and how.
    """

    stages: tuple[StageProfile, ...]
    placement: Placement
    p2p_time: float | None
    op_gap: Spread | None
    message_time: Spread | None
    model: str
    device: str
    dtype: str
    threads: int
    torch_version: str
    repeats: int
    together: bool

    def settings(self) -> Settings:
        """The costs as a config file holds them."""
        message = 0.0 if self.message_time is None else self.message_time.median
        held = set(self.placement.chunks_on.tolist())
        return Settings(
            ranks=self.placement.ranks,
            chunks=held.pop() if len(held) == 1 else None,
            forward_times=tuple(stage.forward.median for stage in self.stages),
            backward_times=tuple(stage.backward.median for stage in self.stages),
            backward_input_times=tuple(stage.backward_input.median for stage in self.stages),
            backward_weight_times=tuple(stage.backward_weight.median for stage in self.stages),
            recompute_times=tuple(stage.recompute.median for stage in self.stages),
            offload_times=tuple(stage.offload.median for stage in self.stages),
            activation_bytes=tuple(float(stage.activation_bytes) for stage in self.stages),
            weight_activation_bytes=tuple(float(stage.weight_activation_bytes) for stage in self.stages),
            recompute_bytes=tuple(float(stage.recompute_bytes) for stage in self.stages),
            offload_bytes=tuple(float(stage.offload_bytes) for stage in self.stages),
            static_bytes=tuple(float(stage.static_bytes) for stage in self.stages),
            p2p_time=max((self.p2p_time or 0.0) - 2 * message, 0.0),
            op_gap=None if self.op_gap is None else self.op_gap.median,
            message_time=None if self.message_time is None else message,
            time_unit="ms",
        )

    def provenance(self) -> list[str]:
        """Where the numbers come from, in lines."""
        how = "all ranks measuring at once" if self.together else "one stage after the other"
        return [
            f"{self.model} in {self.dtype}, measured by pipeplan profile: {self.repeats} rounds, {how}",
            f"on {self.device}, {self.threads} CPU thread(s) a process, PyTorch {self.torch_version}",
            *(["copies to the host stay within its memory: a GPU's take longer"] if self.device == "cpu" else []),
            "medians (quartiles):",
            *self._lost(),
            *(f"stage {number}, {stage}" for number, stage in enumerate(self.stages)),
        ]

    def _lost(self) -> list[str]:
        """What is lost between ops, in a line."""
        gap = [] if self.op_gap is None else [f"before every op {self.op_gap}"]
        message = [] if self.message_time is None else [f"for every message {self.message_time}"]
        return [f"lost between ops, ms: {', '.join(gap + message)}"] if gap or message else []

    def write(self, path: Path, notes: Sequence[str] = ()) -> None:
        """Write a config file; its ending is .yaml, .yml or .json.

        A YAML file says in comments where the numbers come from, and adds ``notes``, a line each.

        Raises
        ------
        InputError
            For another ending, or where it cannot be written.
        """
        write_costs_file(path, self.settings(), (*self.provenance(), *notes))
