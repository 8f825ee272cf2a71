"""Results of a training run and of a profile, and the config file that a profile writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pipeplan.costs import Layer, Role, Settings, Spread, write_costs_file
from pipeplan.extensions.training.runtime.stage_measurement import StageProfile
from pipeplan.foundation.errors import GradientError
from pipeplan.model import Floats, Placement, Schedule, Timeline


@dataclass(frozen=True, eq=False, kw_only=True)
class RunResult:
    """Measurements of a training run.

    Attributes
    ----------
    timeline
        Every op of the step of median length, in milliseconds from the first start on any rank. A compute op lasts while it
        computes; a SEND, until it is handed over; a RECV, from its posting until the op that needs it finds its data. Both
        ops of an overlapped pair have the pair's time.
    steps
        Timeline of every timed step, in milliseconds from the first start of the first one.
    wait
        Time that the rank waited at each op before it could compute, in milliseconds, shape (ops,).
    step_seconds
        Time of every timed step, from the first start to the last end on any rank.
    losses
        Loss of every step, the mean over its microbatches, warm-up steps first.
    max_gradient_difference, max_loss_difference
        Largest absolute differences from a single-process run over all steps, parameters and microbatches; None if the run
        was not verified.
    tolerance
        Allowed difference of gradients: 0 on a CPU in float32, where kernels and the order of summation are the same.
    peak_bytes
        Peak memory of each rank's GPU; None on a CPU.
    model, device, dtype, threads, torch_version
        Name of the model, and the environment of the run.
    """

    timeline: Timeline
    steps: tuple[Timeline, ...]
    wait: Floats
    step_seconds: tuple[float, ...]
    losses: tuple[float, ...]
    max_gradient_difference: float | None
    max_loss_difference: float | None
    tolerance: float
    peak_bytes: tuple[int, ...] | None
    model: str
    device: str
    dtype: str
    threads: int
    torch_version: str

    @property
    def schedule(self) -> Schedule:
        """Return the schedule of the run, with its communication."""
        return self.timeline.schedule

    @property
    def median_step_seconds(self) -> float:
        """Return the median of the timed steps, in seconds."""
        return median(self.step_seconds)

    @property
    def step_spread(self) -> Spread:
        """Return median and quartiles of the timed steps, in seconds."""
        return Spread.of(self.step_seconds)

    @property
    def gradients_equal(self) -> bool | None:
        """Return whether the gradients are within the tolerance; None if the run was not verified."""
        if self.max_gradient_difference is None:
            return None
        return self.max_gradient_difference <= self.tolerance

    def require_equal_gradients(self) -> None:
        """Raise an error if the run was verified and gradients differ.

        Raises
        ------
        GradientError
            If gradients differ by more than the tolerance.
        """
        if self.gradients_equal is False:
            raise GradientError(
                f"gradients differ from the single-process run by up to {self.max_gradient_difference:.3g}; "
                f"at most {self.tolerance:.3g} comes from the order of summation"
            )


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Costs of a model's stages, measured on a machine.

    Attributes
    ----------
    stages
        Costs of each stage, in the order of the model.
    placement
        Rank of each stage. With ``together``, the ranks measured at the same time.
    p2p_time
        Milliseconds from the sending of a stage's output until another rank has it, including the overhead on both ranks;
        None if not measured.
    op_gap, message_time
        Milliseconds that a rank loses before every op, and for every message that it sends or receives; None if not
        measured.
    model, device, dtype, threads, torch_version, repeats, together
        Name of the model, the environment, the number of rounds, and whether all ranks measured at the same time.
    roles
        Role of each layer if every stage is a single layer, as with ``per_layer``; else None.
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
    roles: tuple[Role | None, ...] | None = None

    def settings(self) -> Settings:
        """Return the costs as settings, as a config file holds them: of layers if every stage is one, else of stages."""
        message = 0.0 if self.message_time is None else self.message_time.median
        return (self._of_stages() if self.roles is None else Settings(layers=self._layers(self.roles))).replace(
            # The measured transfer includes the overhead on both ranks, which the simulator adds by itself.
            p2p_time=max((self.p2p_time or 0.0) - 2 * message, 0.0),
            op_gap=None if self.op_gap is None else self.op_gap.median,
            message_time=None if self.message_time is None else message,
            time_unit="ms",
        )

    def _layers(self, roles: tuple[Role | None, ...]) -> tuple[Layer, ...]:
        """Return the costs of layers. A stage holds the input of its first layer; each further one is an output before."""
        return tuple(
            Layer(
                forward=stage.forward.median,
                backward=stage.backward.median,
                backward_input=stage.backward_input.median,
                backward_weight=stage.backward_weight.median,
                recompute=stage.recompute.median,
                offload=stage.offload.median,
                activation_bytes=float(max(stage.activation_bytes - stage.recompute_bytes, 0)),
                weight_activation_bytes=float(max(stage.weight_activation_bytes - stage.recompute_bytes, 0)),
                offload_bytes=float(max(stage.offload_bytes - stage.recompute_bytes, 0)),
                input_bytes=float(stage.recompute_bytes),
                static_bytes=float(stage.static_bytes),
                role=role,
            )
            for stage, role in zip(self.stages, roles, strict=True)
        )

    def _of_stages(self) -> Settings:
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
        )

    def provenance(self) -> list[str]:
        """Return lines that describe the measurement, for comments in the file."""
        how = "all ranks measuring at once" if self.together else "one stage after the other"
        return [
            f"{self.model} in {self.dtype}, measured by pipeplan profile: {self.repeats} rounds, {how}",
            f"on {self.device}, {self.threads} CPU thread(s) a process, PyTorch {self.torch_version}",
            *(["copies to the host stay within its memory: a GPU's take longer"] if self.device == "cpu" else []),
            "medians (quartiles):",
            *self._lost(),
            *(
                f"{'stage' if self.roles is None else 'layer'} {number}, {stage}"
                for number, stage in enumerate(self.stages)
            ),
        ]

    def _lost(self) -> list[str]:
        gap = [] if self.op_gap is None else [f"before every op {self.op_gap}"]
        message = [] if self.message_time is None else [f"for every message {self.message_time}"]
        return [f"lost between ops, ms: {', '.join(gap + message)}"] if gap or message else []

    def write(self, path: Path, notes: Sequence[str] = ()) -> None:
        """Write a config file with the suffix .yaml, .yml or .json.

        A YAML file describes the measurement in comments, followed by ``notes``, one per line.

        Raises
        ------
        InputError
            If the file has another suffix or cannot be written.
        """
        write_costs_file(path, self.settings(), (*self.provenance(), *notes))
