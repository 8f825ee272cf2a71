"""The one module that touches private parts of ``torch.distributed.pipelining``.

What is used, and why nothing public serves:

* ``schedules._Action`` and ``_ComputationType``: the runtime's own ops; its CSV reader takes them from a file only.
* ``schedules._PipelineScheduleRuntime``: the one runtime that executes a schedule with communication. Overridden here:
  ``_maybe_compute_loss``, ``_maybe_get_loss`` and ``_update_losses``, which keep losses in a list by order of arrival and
  so take the wrong one where the last stage's forwards are not in the order of the microbatches.
* ``_step_microbatches`` of the single-stage schedules: only there stands what they run; their ``pipeline_order`` is
  drawn separately (and numbers the last rank's forwards of 1F1B one too high).
* ``_backward``: the split backward, which has no public entry.

Every entry point first calls :func:`~pipeplan.runtime.requirements.require_torch`, which refuses versions that nobody
has checked. The tests run against the installed one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining._backward import stage_backward, stage_backward_input, stage_backward_weight
from torch.distributed.pipelining.schedules import (
    PipelineScheduleMulti,
    PipelineScheduleSingle,
    _Action,
    _ComputationType,
    _PipelineScheduleRuntime,
    get_schedule_class,
)

from pipeplan.errors import InputError, ShapeError, UnknownNameError
from pipeplan.model import NO_MICROBATCH, Kind, Op, Schedule

SCHEDULE_CLASSES = (
    "GPipe",
    "1F1B",
    "LoopedBFS",
    "Interleaved1F1B",
    "InterleavedZeroBubble",
    "ZBVZeroBubble",
    "DualPipeV",
)
"""The schedules of PyTorch 2.13 and 2.14, by the names that ``get_schedule_class`` takes."""

Rows = list[list[Op]]
Loss = Callable[[Tensor, Tensor], Tensor]


# --- ops and the runtime's actions ---------------------------------------------------------------------------------


def actions_of(row: Iterable[Op]) -> list[Any]:
    """One rank's ops as the runtime's actions; an overlapped pair is one action of two."""
    actions: list[Any] = []
    pair: list[Any] = []
    for op in row:
        microbatch = None if op.microbatch == NO_MICROBATCH else op.microbatch
        action = _Action(op.stage, _ComputationType(op.kind.name), microbatch)
        if op.group < 0:
            actions.append(action)
            continue
        pair.append(action)
        if len(pair) == 2:
            actions.append(_Action(-1, _ComputationType.OVERLAP_F_B, None, tuple(pair)))
            pair = []
    return actions


def ops_of(actions: Iterable[Any]) -> list[Op]:
    """The ops of one rank's actions; empty steps are passed over."""
    row: list[Op] = []
    for number, action in enumerate(actions):
        if action is None:
            continue
        parts, group = ((action,), -1) if action.sub_actions is None else (action.sub_actions, number)
        for part in parts:
            microbatch = NO_MICROBATCH if part.microbatch_index is None else part.microbatch_index
            row.append(Op(Kind[part.computation_type.value], part.stage_index, microbatch, group=group))
    return row


# --- what PyTorch's schedules run ----------------------------------------------------------------------------------


def schedule_class(name: str) -> type:
    """PyTorch's schedule class of this name, with or without ``Schedule`` in front.

    Raises
    ------
    UnknownNameError
        If there is none.
    """
    short = name.removeprefix("Schedule")
    known = {known.lower(): known for known in SCHEDULE_CLASSES}
    if short.lower() not in known:
        raise UnknownNameError("PyTorch schedule", name, SCHEDULE_CLASSES)
    found: type = get_schedule_class(known[short.lower()])
    return found


def instantiate(cls: type, ranks: int, microbatches: int, chunks: int) -> Any:
    """A live schedule of a class, over stand-ins for stages.

    Raises
    ------
    ShapeError
        If PyTorch refuses the shape.
    InputError
        If the class is not a pipeline schedule.
    """
    try:
        if issubclass(cls, PipelineScheduleSingle):
            if chunks != 1:
                raise ShapeError(f"{cls.__name__} has 1 chunk per rank, not {chunks}")
            return cls(_stand_in(0, ranks, ranks), microbatches, loss_fn=_no_loss)
        if issubclass(cls, PipelineScheduleMulti):
            stages = [_stand_in(chunk * ranks, ranks, ranks * chunks) for chunk in range(chunks)]
            return cls(stages, microbatches, loss_fn=_no_loss)
    except (ValueError, AssertionError, RuntimeError) as error:
        raise ShapeError(f"PyTorch's {cls.__name__} refuses this shape: {_first_line(error)}") from None
    raise InputError(f"{cls.__name__} is not a schedule class of torch.distributed.pipelining")


def rows_of(live: Any, *, communication: bool) -> tuple[Rows, dict[int, int], int]:
    """Every rank's ops of a live schedule, the rank of every stage, and the number of microbatches.

    Raises
    ------
    InputError
        If the object is not a pipeline schedule or has no order.
    """
    if isinstance(live, PipelineScheduleSingle):
        if communication:
            raise InputError(f"{type(live).__name__} has no order with communication; insert_communication adds it")
        ranks = range(live._num_stages)
        return [_witnessed(live, rank) for rank in ranks], {rank: rank for rank in ranks}, live._n_microbatches
    if not isinstance(live, PipelineScheduleMulti):
        raise InputError(f"a {type(live).__name__} is not a schedule of torch.distributed.pipelining")
    lowered = getattr(live, "pipeline_order_with_comms", {})
    order = lowered if communication else live.pipeline_order or lowered
    if not order:
        raise InputError(f"this {type(live).__name__} has no order yet")
    rows = [ops_of(order[rank]) for rank in sorted(order)]
    if not communication:
        rows = [[op for op in row if op.kind.is_compute] for row in rows]
    return rows, live.stage_index_to_group_rank, live._n_microbatches


def _witnessed(live: Any, rank: int) -> list[Op]:
    """What a single-stage schedule does on one rank, recorded by a stand-in for its stage."""
    row: list[Op] = []
    stage = _stand_in(rank, live._num_stages, live._num_stages, row)
    schedule = type(live)(stage, live._n_microbatches, loss_fn=_no_loss)
    schedule._initialize_stage = lambda *_: None
    schedule._step_microbatches(target_mbs=[None] * live._n_microbatches)
    return row


def _stand_in(index: int, ranks: int, stages: int, row: list[Op] | None = None) -> Any:
    """What a schedule asks of a stage, without a model or a process group; each computation adds an op to ``row``."""
    written: list[Op] = [] if row is None else row

    def compute(kind: Kind) -> Callable[..., None]:
        return lambda microbatch, *_, **__: written.append(Op(kind, index, microbatch))

    none: dict[str, Any] = {
        name: lambda *_: [] for name in ("get_fwd_recv_ops", "get_fwd_send_ops", "get_bwd_recv_ops", "get_bwd_send_ops")
    }
    return SimpleNamespace(
        stage_index=index,
        num_stages=stages,
        group_size=ranks,
        group_rank=index % ranks,
        is_first=index == 0,
        is_last=index == stages - 1,
        submod=None,
        forward_one_chunk=compute(Kind.F),
        backward_one_chunk=compute(Kind.B),
        perform_reduce_grad=lambda _: None,
        **none,
    )


def _no_loss(*_: Any) -> None:
    return None


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# --- the runtime ---------------------------------------------------------------------------------------------------


class Observer(Protocol):
    """Is told what the runtime does while it does it."""

    def turn(self, position: int) -> None:
        """The rank turns to the action at this position of its row; at the row's length, it has done them all."""

    def start(self) -> None:
        """What the op waited for has arrived: it starts to compute."""

    def end(self) -> None:
        """The op that started last is done. Told again if its work turns out to go on (the loss of a forward)."""


class ObservedStage(PipelineStage):
    """A stage that tells an observer when it starts and ends to compute."""

    def __init__(self, observer: Observer, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._observer = observer

    def forward_one_chunk(self, *args: Any, **kwargs: Any) -> Any:
        """F."""
        return self._observed(super().forward_one_chunk, args, kwargs)

    def backward_one_chunk(self, *args: Any, **kwargs: Any) -> Any:
        """B, or I."""
        return self._observed(super().backward_one_chunk, args, kwargs)

    def backward_weight_one_chunk(self, *args: Any, **kwargs: Any) -> Any:
        """W."""
        return self._observed(super().backward_weight_one_chunk, args, kwargs)

    def _observed(self, compute: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        self._observer.start()
        answer = compute(*args, **kwargs)
        self._observer.end()
        return answer


class Runtime(_PipelineScheduleRuntime):
    """PyTorch's runtime, loaded with a schedule of ours and watched by an observer.

    Gradients are summed over the microbatches; where their mean is wanted, the loss function divides.

    Parameters
    ----------
    stages
        This rank's stages, in the order of the model.
    schedule
        With communication.
    loss
        Of the last stage's output and the targets.
    observer
        Told what happens on this rank.
    """

    def __init__(self, stages: Sequence[ObservedStage], schedule: Schedule, loss: Loss, observer: Observer) -> None:
        super().__init__(list(stages), schedule.microbatches, loss_fn=loss, scale_grads=False)
        self._observer = observer
        self._loss_of: dict[int, Tensor] = {}
        self._values: dict[int, Tensor] = {}
        order = {rank: actions_of(row) for rank, row in enumerate(schedule)}
        self._prepare_schedule_with_comms(order, format="compute_comms")
        self.pipeline_order_with_comms[self.rank] = _ObservedActions(order[self.rank], observer)

    def train_step(self, inputs: Tensor, targets: Tensor) -> list[float]:
        """One step on a whole batch; the loss of every microbatch on the rank of the last stage, nothing elsewhere."""
        losses: list[Tensor] = []
        first, last = self._stages[0].is_first, self._stages[-1].is_last
        self.step(
            *((inputs,) if first else ()),
            target=targets if last else None,
            losses=losses if last else None,
            return_outputs=False,
        )
        return [float(loss) for loss in losses]

    def _maybe_compute_loss(self, stage: Any, output: Any, target_mbs: Any, mb_index: int, *_: Any) -> None:
        if stage.is_last:
            loss = self._loss_fn(output, target_mbs[mb_index])
            self._loss_of[mb_index], self._values[mb_index] = loss, loss.detach()
            self._observer.end()

    def _maybe_get_loss(self, stage: Any, mb_index: int) -> Tensor | None:
        return self._loss_of.pop(mb_index) if stage.is_last else None

    def _update_losses(self, stages: Any, losses: list[Tensor] | None) -> None:
        if losses is not None:
            losses[:] = [self._values[microbatch] for microbatch in sorted(self._values)]
        self._values.clear()


class _ObservedActions(list[Any]):
    """One rank's actions; iterating over them tells the observer which one the runtime turns to."""

    def __init__(self, actions: Iterable[Any], observer: Observer) -> None:
        super().__init__(actions)
        self._observer = observer

    def __iter__(self) -> Iterator[Any]:
        for position, action in enumerate(super().__iter__()):
            self._observer.turn(position)
            yield action
        self._observer.turn(len(self))

    def __deepcopy__(self, memo: Any) -> list[Any]:
        """A plain list: the runtime copies its rows to print them when an op fails."""
        return [self[position] for position in range(len(self))]


# --- the backward passes -------------------------------------------------------------------------------------------


class Backward:
    """The backward passes of one stage on one microbatch, as the runtime does them.

    Parameters
    ----------
    module
        The stage.
    inputs
        Its input; a leaf that requires a gradient, except on the first stage.
    output
        Its output, or the loss on the last stage.
    gradient
        Of the output; None on the last stage.
    first
        Whether this is the first stage: its I has nothing to do, its W is the full backward.
    """

    def __init__(
        self, module: torch.nn.Module, inputs: Tensor, output: Tensor, gradient: Tensor | None, *, first: bool
    ) -> None:
        self.module, self.inputs, self.first = module, inputs, first
        self.output = (output,)
        self.gradient = None if gradient is None else (gradient,)
        self._groups: Any = None

    def full(self) -> None:
        """B: gradients of the input and the weights."""
        if self.gradient is None:
            stage_backward(self.output[0], None, [self.inputs])
        else:
            stage_backward(self.output, self.gradient, [self.inputs])

    def input(self) -> None:
        """I: the gradient of the input."""
        if not self.first:
            _, self._groups = stage_backward_input(self.output, self.gradient, [self.inputs], self.module.parameters())

    def weight(self) -> None:
        """W: the gradients of the weights, after I."""
        if self.first:
            self.full()
        else:
            stage_backward_weight(self.module.parameters(), self._groups)
