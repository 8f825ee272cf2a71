"""A schedule in one's own training loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.distributed.device_mesh import DeviceMesh

from pipeplan.errors import InputError
from pipeplan.model import Schedule
from pipeplan.passes import Receives
from pipeplan.runtime.agreement import agreed
from pipeplan.runtime.clocks import clock_for, offset_to_first
from pipeplan.runtime.gradients import MicrobatchLoss, Reduction, clip, total_norm
from pipeplan.runtime.microbatches import Shapes, joined, said, shapes, split
from pipeplan.runtime.offloading import Offloading, host_link
from pipeplan.runtime.progress import Places
from pipeplan.runtime.recording import OpTimes, Recorder, Recording
from pipeplan.runtime.requirements import require_torch
from pipeplan.runtime.schedule_sources import ScheduleSource, forwards_alone, resolved
from pipeplan.runtime.stage_modules import (
    device_of,
    evaluating,
    keep_gathered,
    leaving,
    parts_of,
    require_runnable,
    unwrapped,
    with_index,
)
from pipeplan.runtime.torch_internals import Feed, Loss, ObservedStage, Observer, Runtime, Unobserved


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The outputs of a pass without gradients on the rank of the last stage.

    Attributes
    ----------
    outputs
        Of the last stage, for the whole batch: the microbatches' joined along the first dimension.
    losses
        Of every microbatch, shape (microbatches,); None where no targets were given.
    """

    outputs: Any
    losses: Tensor | None


class Pipeline:
    """Trains the stages of a model by a schedule, on PyTorch's pipeline runtime. All ranks make one together.

    Optimizers, mixed precision, data parallelism and checkpoints are the caller's, as without a pipeline: stages are plain
    modules, and :meth:`step` leaves gradients in their parameters.

    Parameters
    ----------
    schedule
        A strategy's name, a file, a schedule, or what :func:`pipeplan.search` or :func:`pipeplan.simulate` gave. Any that
        PyTorch's runtime can express: one copy of the model, whole sequences. What it says of recomputation and of copies
        to the host's memory is done on top of that, op by op.
    stages
        This rank's modules, on their device: by the number of the stage, or in the order of the stages. Each takes what the
        one before returns: a tensor or a tuple of tensors. They may be wrapped in ``DistributedDataParallel`` or by
        ``fully_shard``: gradients are then reduced once a step, behind the stage's last backward.
    loss
        Of the last stage's output and the targets of a microbatch: a scalar. Needed on the last stage's rank alone.
    microbatches
        How many a batch is cut into; what the schedule says where it is no name.
    reduction
        Of what the gradients are: the ``mean`` over the microbatches' losses, or their ``sum``.
    group
        The pipeline's process group, or its dimension of a device mesh; None: all processes.
    device
        Where the stages are; None: where their parameters are.
    receives
        Where receives stand: as ``early`` as possible, or ``late``, right before they are needed, to hold fewer buffers.
    scaler
        A ``torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler`` (it makes all ranks skip a step together) for
        float16: it scales the losses. Gradients are to be unscaled as always.
    checked
        Refuse a schedule that :func:`pipeplan.check` finds wrong.
    places
        Told at any time where this rank is, for whoever watches.

    Raises
    ------
    InputError
        Before ``init_process_group``; if the ranks were given different things, or a stage is on no rank or on a wrong one.
    ShapeError
        For a schedule of another number of ranks, or one that PyTorch's runtime cannot express.
    PipeplanError
        For a schedule that is not known, cannot be read, or is wrong.
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
        checked: bool = True,
        places: Places | None = None,
    ) -> None:
        require_torch()
        if reduction not in ("mean", "sum"):
            raise InputError(f"reduction is mean or sum, not {reduction}", field="reduction")
        self._group = _pipeline_group(group)
        self.rank, self.ranks = dist.get_rank(self._group), dist.get_world_size(self._group)
        given: Any = stages if isinstance(stages, Mapping) else tuple(stages)
        modules = _modules(given)
        self.device = with_index(device_of(modules, self._group) if device is None else torch.device(device))

        def find() -> Schedule:
            found = resolved(
                schedule,
                ranks=self.ranks,
                microbatches=microbatches,
                held=given,
                receives=receives,
                checked=checked,
            )
            require_runnable(modules, found)
            if found.placement.table[0][-1] == self.rank and not callable(loss):
                raise InputError(f"rank {self.rank} holds the last stage and needs the loss, a function", field="loss")
            return found

        self.schedule, given = agreed(find, given, self._group, self.device)
        numbers = self.schedule.placement.stages_on(self.rank)
        self.stages: dict[int, nn.Module] = {
            number: given[number] if isinstance(given, Mapping) else given[index]
            for index, number in enumerate(numbers)
        }
        keep_gathered(modules, self.schedule)
        self._loss = MicrobatchLoss(loss or (lambda *_: None), self.schedule.microbatches, reduction, scaler)
        self._places = Places(self.ranks) if places is None else places
        self._recorder = Recorder(self.schedule, self.rank, clock_for(self.device), self._places)
        self._shapes: dict[str, Shapes] = {}
        self._recorded: list[OpTimes] | None = None
        self._offset = 0
        if scaler is not None:
            # A rank without the last stage scales no loss, but its gradients are scaled all the same.
            scaler.scale(torch.zeros((), device=self.device))

    # --- what this rank is --------------------------------------------------------------------------------------------

    @property
    def microbatches(self) -> int:
        """How many microbatches a batch is cut into."""
        return self.schedule.microbatches

    @property
    def is_first(self) -> bool:
        """Whether this rank holds the first stage, which takes the inputs."""
        return 0 in self.stages

    @property
    def is_last(self) -> bool:
        """Whether this rank holds the last stage, which takes the targets and has the losses."""
        return self.schedule.stages - 1 in self.stages

    def parameters(self) -> Iterator[nn.Parameter]:
        """The parameters of this rank's stages, each once: what its optimizer optimizes."""
        seen = {id(parameter): parameter for module in self.stages.values() for parameter in module.parameters()}
        return iter(seen.values())

    # --- training -----------------------------------------------------------------------------------------------------

    def step(self, inputs: Any = None, targets: Any = None, **keywords: Any) -> Tensor | None:
        """One batch forward and backward on all ranks; gradients are added to those in the parameters.

        Parameters
        ----------
        inputs
            The whole batch: a tensor, or a tuple of them for a first stage of several arguments; or a list with an entry a
            microbatch. Used on the first stage's rank alone.
        targets
            Of the loss, in the same forms, dictionaries too. Used on the last stage's rank alone.
        **keywords
            For the modules of all stages on this rank; tensors are cut like the inputs.

        Returns
        -------
        Tensor or None
            On the last stage's rank the microbatches' losses as the loss gave them, detached, shape (microbatches,).

        Raises
        ------
        InputError
            For a batch that does not divide or has another shape than the one before, a loss that is no scalar, and without
            inputs, targets or gradients.
        """
        if not torch.is_grad_enabled():
            raise InputError("step() trains and needs gradients: call it outside torch.no_grad(), or call eval()")
        feed = self._feed(inputs, targets, keywords, "step")
        if self.is_last and feed.targets is None:
            raise InputError(f"rank {self.rank} holds the last stage and needs the targets", field="targets")
        self._recorder.begin_step()
        try:
            losses, _ = self._training.run(feed)
        except Exception as error:
            error.add_note(f"on {self._places.of(self.rank).describe(self.schedule, self.rank)}")
            raise
        if self._recorded is not None:
            self._recorded.append(self._recorder.times(self._offset))
        self._recorder.between_steps()
        return torch.stack(losses) if losses else None

    def eval(self, inputs: Any = None, targets: Any = None, **keywords: Any) -> Evaluation | None:
        """One batch forward on all ranks, without gradients and with the modules in evaluation mode.

        Takes what :meth:`step` takes; targets may be left out. The forwards run in the schedule's order. Batches may have
        another size than those of training.

        Returns
        -------
        Evaluation or None
            On the last stage's rank.

        Raises
        ------
        InputError
            As for :meth:`step`.
        """
        feed = self._feed(inputs, targets, keywords, "eval")
        with evaluating(self.stages.values()), torch.no_grad():
            losses, outputs = self._evaluation.run(feed)
        if not self.is_last:
            return None
        return Evaluation(joined(outputs), torch.stack(losses) if losses else None)

    def broadcast(self, losses: Tensor | None) -> Tensor:
        """The losses on all ranks: what :meth:`step` gave on the last stage's, shape (microbatches,). All ranks call it."""
        shared = torch.zeros(self.microbatches, device=self.device) if losses is None else losses.float()
        last = int(self.schedule.placement.table[0][-1])
        dist.broadcast(shared, group_src=last, group=self._group)
        return shared

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale the gradients of all ranks so that their norm together is at most ``max_norm``. All ranks call it.

        Gives the norm before, the same on all ranks: that of the whole model, as ``torch.nn.utils.clip_grad_norm_`` gives it
        without a pipeline.
        """
        norm = total_norm(self.stages.values(), norm_type, self._group, self.device)
        clip(self.stages.values(), max_norm, norm)
        return norm

    def forget_shapes(self) -> None:
        """Have the next step and evaluation take batches of other shapes than those before. All ranks call it."""
        self._shapes.clear()
        self._training.forget_shapes()
        self._evaluation.forget_shapes()

    # --- looking, keeping ---------------------------------------------------------------------------------------------

    @contextmanager
    def record(self) -> Iterator[Recording]:
        """Measure every op of the steps inside. All ranks enter and leave together; then all have the recording.

        >>> with pipeline.record() as recording:  # doctest: +SKIP
        ...     pipeline.step(inputs, targets)
        >>> recording.save("step.trace.json")  # doctest: +SKIP

        Evaluations are not measured. On a GPU each recorded step ends with waiting for it.
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
        """Return the state of this rank's stages, with keys that name the stage: ``stages.3.weight``.

        It does not depend on which rank holds a stage, nor on DDP around it; so ``torch.distributed.checkpoint`` can load it
        under another schedule of the same stages.
        """
        return {
            f"stages.{number}.{name}": value
            for number, module in self.stages.items()
            for name, value in unwrapped(module).state_dict().items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load what :meth:`state_dict` gave.

        Raises
        ------
        InputError
            If it holds nothing of one of this rank's stages.
        RuntimeError
            If it does not fit a module, as PyTorch says it.
        """
        for number, module in self.stages.items():
            prefix = f"stages.{number}."
            mine = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
            own = unwrapped(module)
            if not mine and own.state_dict():
                raise InputError(f"the checkpoint has nothing of stage {number}, which rank {self.rank} holds")
            own.load_state_dict(mine)

    # --- inside -------------------------------------------------------------------------------------------------------

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

    def _feed(self, inputs: Any, targets: Any, keywords: dict[str, Any], of: str) -> Feed:
        cut = partial(split, microbatches=self.microbatches, device=self.device)
        arguments: list[tuple[Any, ...]] = [()] * self.microbatches
        if self.is_first:
            if inputs is None:
                raise InputError(f"rank {self.rank} holds the first stage and needs the inputs", field="inputs")
            arguments = [part if isinstance(part, tuple) else (part,) for part in cut(inputs, what="the inputs")]
        named = cut(keywords, what="the keywords") if keywords else [{} for _ in arguments]
        wanted = self.is_last and targets is not None
        feed = Feed(arguments, named, cut(targets, what="the targets") if wanted else None)
        now = shapes((arguments[0], named[0]))
        before = self._shapes.setdefault(of, now)
        if _names(now) != _names(before):
            raise InputError(
                f"this batch comes with the keywords {_names(now) or 'none'} and the ones before it with "
                f"{_names(before) or 'none'}: give every batch the same, or call forget_shapes() on all ranks first",
                field="keywords",
            )
        if now != before:
            raise InputError(
                f"this batch has other shapes than the ones before it ({said(now)} after {said(before)}): pad or drop "
                "it, or call forget_shapes() on all ranks first",
                field="inputs",
            )
        return feed


def _names(shapes_of_feed: Shapes) -> str:
    """The names of the keywords in the shapes of a microbatch's arguments and keywords."""
    return ", ".join(name for name, _ in shapes_of_feed[1])


def _pipeline_group(group: dist.ProcessGroup | DeviceMesh | None) -> Any:
    """The process group that is meant; None: all processes."""
    if not dist.is_initialized():
        raise InputError("call torch.distributed.init_process_group() before making a Pipeline", field="group")
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise InputError("a mesh of several dimensions: give the pipeline's own, such as mesh['pp']", field="group")
        group = group.get_group()
    if group is not None and dist.get_rank(group) < 0:
        raise InputError(
            f"process {dist.get_rank()} is not in the group that is given as the pipeline's", field="group"
        )
    return group


def _modules(stages: Any) -> list[nn.Module]:
    """What is a module of what was given as stages; the rest is refused together with the other ranks."""
    parts = stages.values() if isinstance(stages, Mapping) else stages
    return [module for module in parts if isinstance(module, nn.Module)]
