"""Pipeline: run a schedule in your own training loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
from pipeplan.runtime.agreement import Pass, StepAgreement, agreed, on_all_ranks
from pipeplan.runtime.clocks import clock_for, offset_to_first
from pipeplan.runtime.gradients import MicrobatchLoss, Reduction, clip, total_norm
from pipeplan.runtime.microbatches import Shapes, Uneven, in_words, joined, samples, shapes, sizes, split
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
from pipeplan.runtime.ties import Tied, Ties
from pipeplan.runtime.torch_internals import Feed, Loss, ObservedStage, Observer, Runtime, Unobserved


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
        checked: bool = True,
        places: Places | None = None,
    ) -> None:
        require_torch()
        self._group = _pipeline_group(group)
        self.rank, self.ranks = dist.get_rank(self._group), dist.get_world_size(self._group)
        own_stages: Any = stages if isinstance(stages, Mapping) else tuple(stages)
        modules = _modules(own_stages)
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
        self._agreement = StepAgreement(self._group, self.device)
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
        """
        feed = self._agreed_feed("step", inputs, targets, keywords)
        self._recorder.begin_step()
        self._ties.drop_copies()
        try:
            # Only the rank of the last stage gets losses.
            losses, _ = self._training.run(feed)
            self._ties.reduce()
        except Exception as error:
            error.add_note(f"on {self._places.of(self.rank).describe(self.schedule, self.rank)}")
            raise
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
        feed = self._agreed_feed("eval", inputs, targets, keywords)
        with evaluating(self.stages.values()), torch.no_grad():
            losses, outputs = self._evaluation.run(feed)
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
        self._shapes.clear()
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

        The keys depend neither on the rank that holds a stage nor on DDP around it, so ``torch.distributed.checkpoint`` can
        load the state under another schedule of the same stages.
        """
        return {
            f"stages.{number}.{name}": value
            for number, module in self.stages.items()
            for name, value in unwrapped(module).state_dict().items()
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
                own = unwrapped(module)
                if not mine and own.state_dict():
                    raise InputError(f"the checkpoint has no state of stage {number}, which rank {self.rank} holds")
                own.load_state_dict(mine)
            return True, None

        if not self._ties:
            load()
            return
        on_all_ranks(load, self._group)
        self._ties.share_values()

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

    def _agreed_feed(self, what: Pass, inputs: Any, targets: Any, keywords: dict[str, Any]) -> Feed:
        """Return this rank's feed of a pass that all ranks can start, or raise on all of them."""
        shapes_of: list[Shapes] = []

        def prepare() -> tuple[Feed, tuple[int, int, int]]:
            feed = self._feed(what, inputs, targets, keywords)
            now = shapes((feed.arguments[0], feed.keywords[0]))
            before = self._shapes.get(what, now)
            if what == "step":
                _require_same_shapes(now, before)
            shapes_of.append(now)
            counts = samples(inputs) if self.is_first else 0, samples(targets) if self.is_last else 0
            return feed, (now != before, *counts)

        feed, (changed, size, wanted) = self._agreement.before(what, prepare)
        if size % self.microbatches or wanted % self.microbatches:
            if wanted not in (0, size):
                raise InputError(
                    f"the inputs hold {size} samples and the targets {wanted}: pass as many", field="targets"
                )
            feed = replace(feed, sizes=sizes(size, self.microbatches))
        if changed:
            self._evaluation.forget_shapes()
        (self._shapes[what],) = shapes_of
        return feed

    def _feed(self, what: Pass, inputs: Any, targets: Any, keywords: dict[str, Any]) -> Feed:
        training = what == "step"
        if training and not torch.is_grad_enabled():
            raise InputError("step() trains and needs gradients: call it outside torch.no_grad(), or call eval()")
        cut = partial(split, microbatches=self.microbatches, device=self.device)
        padded: Uneven = "refused" if training else "padded"
        arguments: list[tuple[Any, ...]] = [()] * self.microbatches
        if self.is_first:
            if inputs is None:
                raise InputError(f"rank {self.rank} holds the first stage and needs the inputs", field="inputs")
            parts = cut(inputs, what="the inputs", uneven=padded)
            arguments = [part if isinstance(part, tuple) else (part,) for part in parts]
        named = cut(keywords, what="the keywords", uneven=padded) if keywords else [{} for _ in arguments]
        if not self.is_last or targets is None:
            if self.is_last and training:
                raise InputError(f"rank {self.rank} holds the last stage and needs the targets", field="targets")
            return Feed(arguments, named, None)
        return Feed(arguments, named, cut(targets, what="the targets", uneven="refused" if training else "kept"))


def _require_same_shapes(now: Shapes, before: Shapes) -> None:
    """Require that a batch has the keywords and the shapes of the one before, for which the buffers are allocated."""
    if _names(now) != _names(before):
        raise InputError(
            f"this batch comes with the keywords {_names(now) or 'none'} and the ones before it with "
            f"{_names(before) or 'none'}: pass the same with every batch, or call forget_shapes() on all ranks first",
            field="keywords",
        )
    (arguments, named), (arguments_before, named_before) = now, before
    changes = [("this batch", arguments, arguments_before)]
    changes += [
        (f"the keyword {name} of this batch", shape, shape_before)
        for (name, shape), (_, shape_before) in zip(named, named_before, strict=True)
    ]
    for what, shape, shape_before in changes:
        if shape != shape_before:
            raise InputError(
                f"{what} has other shapes than before ({in_words(shape) or 'no tensor'} after "
                f"{in_words(shape_before) or 'no tensor'}): pad or drop it, or call forget_shapes() on all ranks first",
                field="inputs",
            )


def _names(shapes_of_feed: Shapes) -> str:
    """Return the names of the keywords in the shapes of a microbatch's arguments and keywords."""
    return ", ".join(name for name, _ in shapes_of_feed[1])


def _pipeline_group(group: dist.ProcessGroup | DeviceMesh | None) -> Any:
    """Return the pipeline's process group; None: all processes."""
    if not dist.is_initialized():
        raise InputError("call torch.distributed.init_process_group() before making a Pipeline", field="group")
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise InputError(
                "group is a multi-dimensional mesh: pass the pipeline's submesh, such as mesh['pp']", field="group"
            )
        group = group.get_group()
    if group is not None and dist.get_rank(group) < 0:
        raise InputError(f"process {dist.get_rank()} is not in the pipeline's process group", field="group")
    return group


def _modules(stages: Any) -> list[nn.Module]:
    """Return the modules among the stages. Anything else is refused later, on all ranks together."""
    parts = stages.values() if isinstance(stages, Mapping) else stages
    return [module for module in parts if isinstance(module, nn.Module)]
