"""Pipeline: run a schedule in your own training loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.distributed.device_mesh import DeviceMesh

from pipeplan.extensions.training.runtime.agreement import PassAgreement, agreed, on_all_ranks
from pipeplan.extensions.training.runtime.clocks import clock_for, offset_to_first
from pipeplan.extensions.training.runtime.feeds import Batch, Feeds, Pass
from pipeplan.extensions.training.runtime.gradients import MicrobatchLoss, Reduction, clip, total_norm
from pipeplan.extensions.training.runtime.group import pipeline_group
from pipeplan.extensions.training.runtime.microbatches import joined
from pipeplan.extensions.training.runtime.offloading import Offloading, host_link
from pipeplan.extensions.training.runtime.progress import Places
from pipeplan.extensions.training.runtime.recording import OpTimes, Recorder, Recording
from pipeplan.extensions.training.runtime.requirements import require_torch
from pipeplan.extensions.training.runtime.schedule_sources import ScheduleSource, forwards_alone, resolved
from pipeplan.extensions.training.runtime.stage_modules import (
    device_of,
    evaluating,
    keep_gathered,
    leaving,
    load_saved_state,
    modules_in,
    parts_of,
    require_runnable,
    saved_state,
    with_index,
)
from pipeplan.extensions.training.runtime.ties import Tied, Ties
from pipeplan.extensions.training.runtime.torch_internals import (
    Feed,
    Loss,
    ObservedStage,
    Observer,
    Runtime,
    Unobserved,
)
from pipeplan.foundation.errors import InputError
from pipeplan.model import Schedule
from pipeplan.passes import Receives


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Result of an evaluation, on the rank of the last stage.

    Attributes
    ----------
    outputs
        Outputs of the last stage for the whole batch: those of the microbatches, joined along the first dimension.
    losses
        Loss of every microbatch, shape (microbatches,), or of those that have samples; None without targets.
    """

    outputs: Any
    losses: Tensor | None


class Pipeline:
    """Stages of a model that train by a schedule, on PyTorch's pipeline runtime. All ranks create one together.

    Optimizers, mixed precision, data parallelism and checkpoints stay yours, as without a pipeline: stages are plain
    modules, and :meth:`step` leaves gradients in their parameters.

    Parameters
    ----------
    schedule
        Name of a strategy, a file, a schedule, or a result of :func:`pipeplan.search` or :func:`pipeplan.simulate`.
        PyTorch's runtime must be able to express it: one copy of the model, whole sequences. Recomputation and copies to the
        host's memory run where the schedule has them.
    stages
        This rank's modules, on their device: by the number of the stage, or in the order of the stages. Each takes what the
        one before returns: a tensor or a tuple of tensors. They may be wrapped in ``DistributedDataParallel`` or by
        ``fully_shard``: gradients are then reduced once per step, after the stage's last backward.
    loss
        Function of the last stage's output and the targets of a microbatch that returns a scalar. Only the rank of the last
        stage needs it.
    microbatches
        Number of microbatches of a batch. Required with the name of a strategy; otherwise it must agree with the schedule.
    reduction
        Reduction of the microbatches' losses whose gradients are computed: ``mean`` or ``sum``.
    group
        Process group of the pipeline, or its dimension of a device mesh; None: all processes.
    device
        Device of the stages; None: that of their parameters.
    receives
        Place of receives: as ``early`` as possible, or ``late``, right before they are needed, to hold fewer buffers.
    scaler
        A ``torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler`` for float16, which makes all ranks skip a step
        together. The pipeline scales the losses with it; unscale the gradients as usual.
    tied
        Groups of parameters that train as one, by the number of the stage and the name in its module:
        ``[("0.emb.weight", "3.head.weight")]``. They begin with the value of the first one; after each step all of them have
        the sum of their gradients. :func:`ties_of` returns the groups of a whole model.
    varying_lengths
        True if the microbatches of a batch, passed as a list, may differ in length, as packed sequences do. What stages send
        must grow evenly with the length.
    checked
        True to refuse a schedule in which :func:`pipeplan.check` finds errors.
    places
        Record of what each rank is doing, for monitoring from outside.

    Raises
    ------
    InputError
        If ``init_process_group`` has not been called, the ranks have different arguments, a stage is on no rank or on a
        wrong one, or parameters cannot be tied.
    ShapeError
        If the schedule has another number of ranks, or PyTorch's runtime cannot express it.
    PipeplanError
        If the schedule is unknown, unreadable or invalid.
    """

    def __init__(
        self,
        schedule: ScheduleSource,
        stages: Mapping[int, nn.Module] | Iterable[nn.Module],
        loss: Callable[..., Tensor] | None = None,
        *,
        microbatches: int | None = None,
        reduction: Reduction = "mean",
        group: dist.ProcessGroup | DeviceMesh | None = None,
        device: torch.device | str | None = None,
        receives: Receives = "early",
        scaler: GradScaler | None = None,
        tied: Tied = (),
        varying_lengths: bool = False,
        checked: bool = True,
        places: Places | None = None,
    ) -> None:
        require_torch()
        self._group = pipeline_group(group)
        self.rank, self.ranks = dist.get_rank(self._group), dist.get_world_size(self._group)
        own_stages: Any = stages if isinstance(stages, Mapping) else tuple(stages)
        modules = modules_in(own_stages)
        self.device = with_index(device_of(modules, self._group) if device is None else torch.device(device))

        def find() -> Schedule:
            if reduction not in ("mean", "sum"):
                raise InputError(f"invalid reduction {reduction!r}: expected mean or sum", field="reduction")
            chosen = resolved(
                schedule,
                ranks=self.ranks,
                microbatches=microbatches,
                held=own_stages,
                receives=receives,
                checked=checked,
            )
            require_runnable(modules, chosen)
            if chosen.placement.table[0][-1] == self.rank and not callable(loss):
                raise InputError(
                    f"rank {self.rank} holds the last stage and needs a loss function: pass loss", field="loss"
                )
            return chosen

        # All ranks raise if one of them finds an error: otherwise the others would wait for it forever.
        self.schedule, own_stages = agreed(find, own_stages, self._group, self.device)
        numbers = self.schedule.placement.stages_on(self.rank)
        self.stages: dict[int, nn.Module] = {
            number: own_stages[number] if isinstance(own_stages, Mapping) else own_stages[index]
            for index, number in enumerate(numbers)
        }
        self._ties = Ties(tied, self.schedule.placement.rank_of[0], self.stages, self._group)
        self._agreement = PassAgreement(self._group, self.device)
        self._feeds = Feeds(
            self.rank, self.is_first, self.is_last, self.microbatches, self.device, varying_lengths=varying_lengths
        )
        keep_gathered(modules, self.schedule)
        self._loss = MicrobatchLoss(loss or (lambda *_: None), self.schedule.microbatches, reduction, scaler)
        self._places = Places(self.ranks) if places is None else places
        self._recorder = Recorder(self.schedule, self.rank, clock_for(self.device), self._places)
        self._recorded: list[OpTimes] | None = None
        self._offset = 0
        if scaler is not None:
            # A rank without the last stage scales no loss, but its gradients are scaled all the same.
            scaler.scale(torch.zeros((), device=self.device))

    # --- what this rank is --------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        numbers = [str(number) for number in sorted(self.stages)]
        stages = f"stages {', '.join(numbers[:-1])} and {numbers[-1]}" if numbers[1:] else f"stage {numbers[0]}"
        return (
            f"<Pipeline of {self.schedule.name or 'a schedule'}: rank {self.rank} of {self.ranks} trains {stages} of "
            f"{self.schedule.stages} in {self.microbatches} microbatches on {self.device}>"
        )

    @property
    def microbatches(self) -> int:
        """Return the number of microbatches of a batch."""
        return self.schedule.microbatches

    @property
    def is_first(self) -> bool:
        """Return whether this rank holds the first stage, which takes the inputs."""
        return 0 in self.stages

    @property
    def is_last(self) -> bool:
        """Return whether this rank holds the last stage, which takes the targets and has the losses."""
        return self.schedule.stages - 1 in self.stages

    def parameters(self) -> Iterator[nn.Parameter]:
        """Yield the parameters of this rank's stages, each once, for its optimizer."""
        seen = {id(parameter): parameter for module in self.stages.values() for parameter in module.parameters()}
        return iter(seen.values())

    # --- training -----------------------------------------------------------------------------------------------------

    def step(self, inputs: Any = None, targets: Any = None, **keywords: Any) -> Tensor | None:
        """Run one batch forward and backward on all ranks; gradients are added to those in the parameters.

        Parameters
        ----------
        inputs
            The whole batch: a tensor, or a tuple of tensors if the first stage takes several arguments; or a list with one
            entry per microbatch. Used on the rank of the first stage only.
        targets
            Targets of the loss, in the same forms, or a dictionary. Used on the rank of the last stage only.
        **keywords
            Keyword arguments for the modules of all stages on this rank; tensors are cut like the inputs.

        Returns
        -------
        Tensor or None
            On the rank of the last stage, the losses of the microbatches as returned by the loss, detached, shape
            (microbatches,). None on all other ranks.

        Raises
        ------
        InputError
            If inputs, targets or gradients are missing, the batch cannot be divided evenly or has other keywords or shapes
            than the one before, on any rank; or the loss is not a scalar.
        RunError
            If a module or the loss raises an exception on another rank; the message names its place. On its own rank, the
            exception is raised with its place as a note. Gradients are then undefined.
        """
        feed = self._agreed_feed("step", self._training, inputs, targets, keywords)
        self._recorder.begin_step()
        self._ties.drop_copies()
        # Only the rank of the last stage gets losses.
        losses, _ = self._run("step", self._training, feed, self._describe_place)
        self._ties.reduce()
        if self._recorded is not None:
            self._recorded.append(self._recorder.times(self._offset))
        self._recorder.between_steps()
        return torch.stack(losses) if losses else None

    def eval(self, inputs: Any = None, targets: Any = None, **keywords: Any) -> Evaluation | None:
        """Run one batch forward on all ranks, without gradients and with the modules in evaluation mode.

        Parameters are those of :meth:`step`; targets are optional. The forwards run in the order of the schedule. A batch
        may have any size, and other shapes than the ones before. If its size is not divisible by the number of microbatches,
        microbatches are padded with copies of their last sample, which are removed before the loss.

        Returns
        -------
        Evaluation or None
            Outputs and losses on the rank of the last stage, None on all other ranks.

        Raises
        ------
        InputError
            In the cases of :meth:`step`, and if inputs and targets of an uneven batch have different numbers of samples.
        """
        feed = self._agreed_feed("eval", self._evaluation, inputs, targets, keywords)
        with evaluating(self.stages.values()), torch.no_grad():
            losses, outputs = self._run("eval", self._evaluation, feed, lambda: f"rank {self.rank}, in an evaluation")
        if not self.is_last:
            return None
        return Evaluation(joined(outputs), torch.stack(losses) if losses else None)

    def broadcast(self, losses: Tensor | None) -> Tensor:
        """Return the losses of :meth:`step` on all ranks, shape (microbatches,). All ranks must call it."""
        # All ranks need a tensor of one shape and type to broadcast into.
        shared = torch.zeros(self.microbatches, device=self.device) if losses is None else losses.float()
        last = int(self.schedule.placement.table[0][-1])
        dist.broadcast(shared, group_src=last, group=self._group)
        return shared

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale the gradients of all ranks so that their global norm is at most ``max_norm``. All ranks must call it.

        Return the norm before, which is the same on all ranks: that of the whole model, as
        ``torch.nn.utils.clip_grad_norm_`` computes it without a pipeline.
        """
        copies = self._ties.copies()
        counted = [parameter for parameter in self.parameters() if parameter not in copies]
        norm = total_norm(counted, norm_type, self._group, self.device)
        clip(self.parameters(), max_norm, norm)
        return norm

    def forget_shapes(self) -> None:
        """Allow the next step and evaluation to take batches of other shapes. All ranks must call it."""
        self._feeds.shapes.clear()
        self._training.forget_shapes()
        self._evaluation.forget_shapes()

    # --- looking, keeping ---------------------------------------------------------------------------------------------

    @contextmanager
    def record(self) -> Iterator[Recording]:
        """Measure every op of the steps in the block. All ranks enter and leave together, and get the same recording.

        >>> with pipeline.record() as recording:  # doctest: +SKIP
        ...     pipeline.step(inputs, targets)
        >>> recording.save("step.trace.json")  # doctest: +SKIP

        Evaluations are not measured. On a GPU, each recorded step ends with a synchronization.

        Raises
        ------
        InputError
            If the pipeline is recording already.
        """
        if self._recorded is not None:
            raise InputError("this pipeline is recording already: leave that recording first")
        self._offset = offset_to_first(self.device, self._group)
        recording = Recording(self.schedule, first_rank=self.rank == 0)
        self._recorded, self._recorder.recording = [], True
        try:
            yield recording
            by_rank: list[Any] = [None] * self.ranks
            dist.all_gather_object(by_rank, self._recorded, group=self._group)
            recording.fill(by_rank)
        finally:
            self._recorded, self._recorder.recording = None, False

    def state_dict(self) -> dict[str, Any]:
        """Return the state of this rank's stages; keys name the stage, as in ``stages.3.weight``.

        The keys depend neither on the rank that holds a stage nor on DDP or ``torch.compile`` around it, so
        ``torch.distributed.checkpoint`` can load the state under another schedule of the same stages.
        """
        return {
            f"stages.{number}.{name}": value
            for number, module in self.stages.items()
            for name, value in saved_state(module).items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load a state from :meth:`state_dict`. With tied parameters all ranks must call it; they get the first one's value.

        Raises
        ------
        InputError
            If it lacks one of this rank's stages.
        RuntimeError
            If it does not fit a module (raised by PyTorch).
        """

        def load() -> tuple[bool, None]:
            for number, module in self.stages.items():
                prefix = f"stages.{number}."
                mine = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
                if not mine and saved_state(module):
                    raise InputError(f"the checkpoint has no state of stage {number}, which rank {self.rank} holds")
                load_saved_state(module, mine)
            return True, None

        if not self._ties:
            load()
            return
        on_all_ranks(load, self._group)
        self._ties.share_values()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _describe_place(self) -> str:
        return self._places.of(self.rank).describe(self.schedule, self.rank)

    @cached_property
    def _training(self) -> Runtime:
        return self._runtime(self.schedule, self._recorder, self._loss.training, self._loss.share)

    @cached_property
    def _evaluation(self) -> Runtime:
        return self._runtime(forwards_alone(self.schedule), Unobserved(), self._loss.evaluation, None)

    def _runtime(
        self, schedule: Schedule, observer: Observer, loss: Loss, share: Callable[[Tensor], Tensor] | None
    ) -> Runtime:
        offloading = Offloading(leaving(schedule, self.rank), host_link(self.device))
        parts = parts_of(schedule, self.rank)
        stages = [
            ObservedStage(
                observer, parts[number], offloading, module, number, schedule.stages, self.device, group=self._group
            )
            for number, module in self.stages.items()
        ]
        return Runtime(stages, schedule, observer, offloading, loss=loss, share=share)

    def _agreed_feed(self, kind: Pass, runtime: Runtime, inputs: Any, targets: Any, keywords: dict[str, Any]) -> Feed:
        """Return this rank's feed of a pass that all ranks can start, or raise on all of them."""
        batch = Batch(inputs, targets, keywords)
        prepared, largest = self._agreement.together(lambda: self._feeds.prepare(kind, batch), self._feeds.numbers)
        feed, changed = self._feeds.agreed(kind, prepared, largest)
        if changed:
            runtime.forget_shapes()
        return feed

    def _run(
        self, kind: Pass, runtime: Runtime, feed: Feed, place: Callable[[], str]
    ) -> tuple[list[Tensor], list[Any]]:
        """Run a pass on all ranks, or raise on all of them. Return losses and outputs of the last stage."""
        try:
            if runtime.must_look_ahead:
                for microbatch in feed.ahead:
                    self._look_ahead(runtime, feed, microbatch)
            return self._agreement.together(lambda: (runtime.run(feed), ()), place=place)[0]
        except Exception:
            # Some ranks may have determined the shapes, and others not: next time they do so together.
            runtime.forget_shapes()
            self._feeds.shapes.pop(kind, None)
            raise

    def _look_ahead(self, runtime: Runtime, feed: Feed, microbatch: int) -> None:
        """Determine the shapes that the stages send for a microbatch on all ranks, or raise on all of them."""
        place = f"rank {self.rank}, determining the shapes of its stages"
        self._agreement.together(lambda: (runtime.look_ahead(feed, microbatch), ()), place=lambda: place)
