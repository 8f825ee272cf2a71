"""PyTorch's pipeline runtime, loaded with a schedule of pipeplan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.distributed.pipelining import PipelineStage, schedules
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
from torch.nn.parallel import DistributedDataParallel

from pipeplan.extensions.training.runtime.microbatches import without_padding
from pipeplan.extensions.training.runtime.offloading import Offloading
from pipeplan.extensions.training.runtime.torch_internals.look_ahead import NeighbourFailed
from pipeplan.extensions.training.runtime.torch_internals.orders import Added, RowEntry, entries_of
from pipeplan.extensions.training.runtime.torch_internals.stage import ObservedStage, Observer
from pipeplan.extensions.training.runtime.torch_internals.varying import LookAhead, expect
from pipeplan.model import Kind, Schedule

Loss = Callable[[Any, Any], Tensor]
"""Function of the last stage's output and the targets of a microbatch."""


@dataclass(frozen=True, slots=True)
class Feed:
    """Inputs of a rank in a step, one entry per microbatch.

    Attributes
    ----------
    arguments
        Arguments of the first stage's module; empty tuples on other ranks.
    keywords
        Keyword arguments of the modules of all stages on this rank.
    targets
        Targets of the loss; None without a loss.
    sizes
        Number of samples of each microbatch of an evaluation, without its padding; None if there is no padding.
    lengths
        Length of each microbatch; None if all have the same shapes.
    """

    arguments: list[tuple[Any, ...]]
    keywords: list[dict[str, Any]]
    targets: list[Any] | None
    sizes: list[int] | None = None
    lengths: list[int] | None = None

    @property
    def ahead(self) -> tuple[int, ...]:
        """Return the microbatches that are run ahead of the first pass: those of the extreme lengths."""
        lengths = self.lengths or [0]
        return tuple(dict.fromkeys(lengths.index(length) for length in (min(lengths), max(lengths))))


class Runtime(_PipelineScheduleRuntime):
    """PyTorch's runtime, loaded with a schedule of pipeplan and watched by an observer.

    Parameters
    ----------
    stages
        This rank's stages, in the order of the model.
    schedule
        Schedule with communication; of forwards alone for an evaluation.
    observer
        Observer of the ops on this rank.
    offloading
        Copies to the host and back.
    loss
        Loss of a microbatch.
    share
        Function from a microbatch's loss to the part that is differentiated, because gradients are summed over the
        microbatches; None for an evaluation.
    """

    def __init__(
        self,
        stages: Sequence[ObservedStage],
        schedule: Schedule,
        observer: Observer,
        offloading: Offloading,
        *,
        loss: Loss,
        share: Callable[[Tensor], Tensor] | None,
    ) -> None:
        # PyTorch first looks ahead with one microbatch, and supports only tensors as targets: here, the microbatch's number.
        ahead = None if share is None else lambda output, number: loss(output, self._targets[int(number)])
        super().__init__(list(stages), schedule.microbatches, loss_fn=ahead, scale_grads=False)
        self._observer, self._loss, self._share, self._offloading = observer, loss, share, offloading
        self._stage_of = {stage.stage_index: stage for stage in stages}
        self._targets: list[Any] = []
        self._sizes: list[int] | None = None
        self._lengths: list[int] | None = None
        self._looks: list[dict[int, LookAhead]] = []
        self._outputs: dict[int, Any] = {}
        self._due: dict[int, Tensor] = {}
        self._losses: dict[int, Tensor] = {}
        rank_of = dict(enumerate(schedule.placement.rank_of[0]))
        self.stage_index_to_group_rank = rank_of
        for stage in stages:
            stage.stage_index_to_group_rank = rank_of
        rows = [entries_of(schedule, rank) for rank in range(schedule.ranks)]
        order: dict[int, list[Any]] = {rank: _actions(row) for rank, row in enumerate(rows)}
        order[self.rank] = self._observed = _ObservedActions(rows[self.rank], observer)
        self.pipeline_order_with_comms = order
        # The public way to register functions accepts only types of PyTorch's own.
        added = {Added.R: self._recompute, Added.OFFLOAD: self._offload, Added.RELOAD: self._reload}
        self._comp_type_to_function_map.update(added)

    def forget_shapes(self) -> None:
        """Look ahead again in the next pass for the shapes that the stages send."""
        self._stages_forward_initialized = self._stages_backward_initialized = False
        self._looks.clear()

    @property
    def must_look_ahead(self) -> bool:
        """Return whether the shapes that the stages send are unknown. It is the same on all ranks."""
        return not self._stages_forward_initialized

    def look_ahead(self, feed: Feed, microbatch: int) -> bool:
        """Determine the shapes that the stages send for a microbatch, on all ranks together, and return True.

        Raises
        ------
        NeighbourFailed
            If a stage on another rank fails.
        Exception
            If a module or the loss of this rank raises it.
        """
        self._begin(feed)
        self._stages_forward_initialized = self._stages_backward_initialized = False
        for stage in self._stages:
            stage.failure = None
        error = None
        try:
            self._initialize_stages(
                feed.arguments[microbatch], feed.keywords[microbatch], torch.tensor(microbatch), None
            )
            if feed.lengths is not None:
                length = feed.lengths[microbatch]
                self._looks.append({stage.stage_index: LookAhead.of(stage, length) for stage in self._stages})
        except Exception as failure:
            error = failure
        failures = [stage.failure for stage in self._stages if stage.failure is not None]
        causes = [cause for cause in failures if not isinstance(cause, NeighbourFailed)]
        first = next(iter((*causes, *failures)), error)
        if first is not None:
            raise first
        return True

    def _begin(self, feed: Feed) -> None:
        self._outputs.clear()
        self._losses.clear()
        self._due.clear()
        self._offloading.clear()
        self._targets, self._sizes, self._lengths = feed.targets or [], feed.sizes, feed.lengths
        for stage in self._stages:
            stage.has_backward = self._has_backward
            stage.clear_runtime_states()

    def run(self, feed: Feed) -> tuple[list[Tensor], list[Any]]:
        """Run one pass. Return the losses and outputs of the microbatches on the rank of the last stage, else empty lists.

        Losses are detached and not synchronized with the GPU. Only an evaluation keeps outputs; without targets it has no
        losses. If the pass fails, its messages are sent and received all the same, so that the other ranks can end theirs.
        """
        self._begin(feed)
        self._expect_lengths()
        # In place of targets, PyTorch hands on the numbers of the microbatches, by which the loss finds its own.
        numbers = [torch.tensor(number) for number in range(self._n_microbatches)]
        try:
            with _failing_at_once():
                self._step_microbatches(feed.arguments, feed.keywords, numbers, None, return_outputs=False)
        except Exception:
            with suppress(RuntimeError):  # The other ranks may have ended.
                self._end_messages()
            raise
        self._targets = []
        return [self._losses[n] for n in sorted(self._losses)], [self._outputs[n] for n in sorted(self._outputs)]

    def _expect_lengths(self) -> None:
        """Make the stages expect messages of the lengths of this pass, unless all are those looked ahead with."""
        if self._lengths is not None and len(self._looks) > 1:
            for stage in self._stages:
                short, long = (look[stage.stage_index] for look in self._looks)
                stage.metadata = expect(stage, short, long, self._lengths)

    def _end_messages(self) -> None:
        """Exchange the remaining messages of a failed step: zeros are sent, and what is received is dropped."""
        posted = [*self.fwd_recv_ops.values(), *self.bwd_recv_ops.values()]
        for action in self._observed.remaining():
            post = _MESSAGES.get(action.computation_type.value)
            if post is not None:
                messages = getattr(self._stage_of[action.stage_index], post)(action.microbatch_index)
                posted.append(schedules._batch_p2p(messages))
        for messages in posted:
            for message in messages:
                message.wait()
        self.fwd_recv_ops.clear()
        self.bwd_recv_ops.clear()

    def _initialize_stages(self, *args: Any, **kwargs: Any) -> None:
        """Look ahead without side effects: restore buffers (PyTorch 2.14 does so itself), and let DDP expect no backward."""
        if self._stages_forward_initialized:
            super()._initialize_stages(*args, **kwargs)
            return
        modules = [stage.submod for stage in self._stages]
        theirs = hasattr(PipelineStage, "_pre_metadata_inference_backup")
        buffers = [] if theirs else [buffer for module in modules for buffer in module.buffers()]
        kept = [buffer.detach().clone() for buffer in buffers]
        try:
            # Looking ahead runs a forward under DDP, which would then wait for its backward.
            with ExitStack() as unreduced:
                for module in modules:
                    if isinstance(module, DistributedDataParallel):
                        unreduced.enter_context(module.no_sync())
                super()._initialize_stages(*args, **kwargs)
        finally:
            for stage in self._stages:
                stage.give_up_buffers()
            with torch.no_grad():
                for buffer, before in zip(buffers, kept, strict=True):
                    buffer.copy_(before)

    def _maybe_compute_loss(self, stage: Any, output: Any, _: Any, mb_index: int, *__: Any) -> None:
        if stage.is_last:
            if self._sizes is not None:
                output = without_padding(output, self._sizes[mb_index], max(self._sizes))
            if self._share is None:
                self._outputs[mb_index] = output
            if self._targets and (self._sizes is None or self._sizes[mb_index]):
                with stage.keeping(mb_index, self._targets[mb_index]):
                    self._losses[mb_index] = self._compute_loss(output, mb_index).detach()
        self._offloading.forward_ended((stage.stage_index, mb_index), self._observer.mark)

    def _compute_loss(self, output: Any, microbatch: int) -> Tensor:
        """Compute the loss of a microbatch, and keep the part of it that is differentiated."""
        loss = self._loss(output, self._targets[microbatch])
        if self._share is not None and torch.is_grad_enabled():
            self._due[microbatch] = self._share(loss)  # until the backward asks for it
        self._observer.op_ended()
        return loss

    def _recompute(self, action: Any, context: Any) -> None:
        stage, microbatch = self._stage_of[action.stage_index], action.microbatch_index
        self._assert_unsharded(stage)
        with stage.again(microbatch):
            output = stage.recompute_one_chunk(microbatch, context.arg_mbs[microbatch], context.kwarg_mbs[microbatch])
            if stage.is_last:
                self._compute_loss(output, microbatch)

    def _offload(self, action: Any, _: Any) -> None:
        copy = self._offloading.offload((action.stage_index, action.microbatch_index))
        self._stage_of[action.stage_index].leave(action.microbatch_index)
        self._observer.copied(Kind.OFFLOAD, action.stage_index, action.microbatch_index, copy)

    def _reload(self, action: Any, _: Any) -> None:
        copy = self._offloading.reload((action.stage_index, action.microbatch_index), self._observer.mark)
        self._observer.copied(Kind.RELOAD, action.stage_index, action.microbatch_index, copy)

    def _maybe_get_loss(self, stage: Any, mb_index: int) -> Tensor | None:
        return self._due.pop(mb_index) if stage.is_last else None

    def _update_losses(self, *_: Any) -> None:
        """Do nothing: losses are kept by the number of their microbatch."""


_MESSAGES = {
    Kind.SEND_F.name: "stand_in_fwd_send_ops",
    Kind.RECV_F.name: "get_fwd_recv_ops",
    Kind.SEND_B.name: "stand_in_bwd_send_ops",
    Kind.RECV_B.name: "get_bwd_recv_ops",
}
"""Methods of a stage that post the messages of a failed step, by the kind of the op."""


@contextmanager
def _failing_at_once() -> Iterator[None]:
    """Make a failing step raise its error without waiting for its sends, as until PyTorch 2.14.

    PyTorch 2.15 first waits for them, forever if other ranks never post the receives: then no rank would report the error.
    """
    tracker = getattr(schedules, "_PendingSendTracker", None)
    if tracker is None:
        yield
        return
    schedules._PendingSendTracker = type("_Undrained", (tracker,), {"drain": lambda self: None})
    try:
        yield
    finally:
        schedules._PendingSendTracker = tracker


def _actions(row: Iterable[RowEntry]) -> list[Any]:
    return [entry.action for entry in row if entry.action is not None]


class _ObservedActions(list[Any]):
    """Actions of one rank. Iterating over them notifies the observer of each cell that the runtime turns to."""

    def __init__(self, row: Sequence[RowEntry], observer: Observer) -> None:
        super().__init__(_actions(row))
        self._row, self._observer = row, observer
        self._place = 0

    def remaining(self) -> list[Any]:
        """Return the actions after the one that the runtime turned to last."""
        return _actions(self._row[self._place + 1 :])

    def __iter__(self) -> Iterator[Any]:
        for place, (cell, action) in enumerate(self._row):
            self._place = place
            if cell is not None:
                self._observer.turn(cell)
            if action is not None:
                yield action

    def __deepcopy__(self, memo: Any) -> list[Any]:
        """Return a plain list: the runtime copies its rows to print them when an op fails."""
        return [self[position] for position in range(len(self))]
