"""PyTorch's pipeline runtime, loaded with a schedule of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
from torch.nn.parallel import DistributedDataParallel

from pipeplan.model import Schedule
from pipeplan.runtime.torch_internals.actions import actions_of
from pipeplan.runtime.torch_internals.stage import ObservedStage, Observer

Loss = Callable[[Any, Any], Tensor]
"""Of the last stage's output and the targets of a microbatch."""


@dataclass(frozen=True, slots=True)
class Feed:
    """What a rank puts into a step, an entry a microbatch.

    Attributes
    ----------
    arguments
        Of the first stage's module; empty tuples on other ranks.
    keywords
        Of the modules of all stages on this rank.
    targets
        Of the loss; None where there is none.
    """

    arguments: list[tuple[Any, ...]]
    keywords: list[dict[str, Any]]
    targets: list[Any] | None


class Runtime(_PipelineScheduleRuntime):
    """PyTorch's runtime, loaded with a schedule of ours and watched by an observer.

    Parameters
    ----------
    stages
        This rank's stages, in the order of the model.
    schedule
        With communication; of forwards alone where ``backward`` is not wanted.
    observer
        Told what happens on this rank.
    loss
        Of a microbatch.
    share
        From a microbatch's loss to what goes backward, since gradients are summed over the microbatches; None for a pass
        of forwards alone.
    """

    def __init__(
        self,
        stages: Sequence[ObservedStage],
        schedule: Schedule,
        observer: Observer,
        loss: Loss,
        share: Callable[[Tensor], Tensor] | None,
    ) -> None:
        # PyTorch first looks ahead with one microbatch, and knows only targets that are a tensor: here, their number.
        ahead = None if share is None else lambda output, number: loss(output, self._targets[int(number)])
        super().__init__(list(stages), schedule.microbatches, loss_fn=ahead, scale_grads=False)
        self._observer, self._loss, self._share = observer, loss, share
        self._targets: list[Any] = []
        self._outputs: dict[int, Any] = {}
        self._due: dict[int, Tensor] = {}
        self._losses: dict[int, Tensor] = {}
        rank_of = dict(enumerate(schedule.placement.rank_of[0]))
        self.stage_index_to_group_rank = rank_of
        for stage in stages:
            stage.stage_index_to_group_rank = rank_of
        order: dict[int, list[Any]] = {rank: actions_of(row) for rank, row in enumerate(schedule)}
        order[self.rank] = _ObservedActions(order[self.rank], observer)
        self.pipeline_order_with_comms = order

    def forget_shapes(self) -> None:
        """Learn anew, in the next pass, what the stages send."""
        self._stages_forward_initialized = self._stages_backward_initialized = False

    def run(self, feed: Feed) -> tuple[list[Tensor], list[Any]]:
        """One pass: every microbatch's loss and output in the order of microbatches, on the last stage's rank; else nothing.

        Losses are detached and wait for no GPU. Only a pass of forwards keeps outputs; without targets it has no losses.
        """
        self._outputs.clear()
        self._losses.clear()
        self._due.clear()
        self._targets = feed.targets or []
        for stage in self._stages:
            stage.has_backward = self._has_backward
            stage.clear_runtime_states()
        numbers = [torch.tensor(number) for number in range(self._n_microbatches)]
        self._step_microbatches(feed.arguments, feed.keywords, numbers, None, return_outputs=False)
        self._targets = []
        return [self._losses[n] for n in sorted(self._losses)], [self._outputs[n] for n in sorted(self._outputs)]

    def _initialize_stages(self, *args: Any, **kwargs: Any) -> None:
        """Looking ahead leaves no trace: buffers are put back (PyTorch 2.14 does so itself), and DDP expects no backward."""
        if self._stages_forward_initialized:
            super()._initialize_stages(*args, **kwargs)
            return
        modules = [stage.submod for stage in self._stages]
        theirs = hasattr(PipelineStage, "_pre_metadata_inference_backup")
        buffers = [] if theirs else [buffer for module in modules for buffer in module.buffers()]
        kept = [buffer.detach().clone() for buffer in buffers]
        with ExitStack() as unreduced:
            for module in modules:
                if isinstance(module, DistributedDataParallel):
                    unreduced.enter_context(module.no_sync())
            super()._initialize_stages(*args, **kwargs)
        with torch.no_grad():
            for buffer, before in zip(buffers, kept, strict=True):
                buffer.copy_(before)

    def _maybe_compute_loss(self, stage: Any, output: Any, _: Any, mb_index: int, *__: Any) -> None:
        if not stage.is_last:
            return
        if self._share is None:
            self._outputs[mb_index] = output
        if self._targets:
            loss = self._loss(output, self._targets[mb_index])
            self._losses[mb_index] = loss.detach()
            if self._share is not None:
                self._due[mb_index] = self._share(loss)
            self._observer.end()

    def _maybe_get_loss(self, stage: Any, mb_index: int) -> Tensor | None:
        return self._due.pop(mb_index) if stage.is_last else None

    def _update_losses(self, *_: Any) -> None:
        """Nothing: losses are kept by the number of their microbatch."""


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
