"""The one package that touches private parts of ``torch.distributed.pipelining``.

The parts used, and why nothing public suffices:

* ``schedules._Action`` and ``_ComputationType``: the runtime's own ops; its CSV reader takes them from a file only.
* ``schedules._PipelineScheduleRuntime``: the one runtime that executes a schedule with communication. Its order and the rank
  of every stage are set as attributes, and ``_step_microbatches`` is called on microbatches that are split already: ``step``
  takes no order of ours, splits unevenly without an error, and takes targets that are one tensor only. Overridden are
  ``_maybe_compute_loss``, ``_maybe_get_loss`` and ``_update_losses``, which keep losses in a list by order of arrival and
  so take the wrong one where the last stage's forwards are not in the order of the microbatches.
* ``stage.PipelineStage.backward_weight_one_chunk`` and ``perform_reduce_grad``, overridden: a W computes gradients without
  the hooks that trigger DDP's reduction, so that its replicas would diverge without an error. DDP's ``reducer`` is told
  to reduce at REDUCE_GRAD.
* ``PipelineStage.backward_one_chunk``, overridden, with the states that it keeps (``fwd_cache`` or
  ``_forward_chunk_states``, ``backward_state``, ``bwd_cache``, ``args_recv_info``) and ``backward_maybe_with_nosync``:
  where no input of a stage needs a gradient, an I finds no weights, and its W would leave them without gradients.
* ``_PipelineScheduleRuntime._comp_type_to_function_map``: the one place that takes functions for types of actions, here R,
  OFFLOAD and RELOAD; the public ``register_custom_function`` takes PyTorch's own types alone. A recomputed or offloaded
  microbatch changes what ``fwd_cache`` holds; ``get_fwd_send_ops`` is overridden to see when its output has gone.
* ``_RecvInfo.buffer`` and ``_make_tensor_from_meta``; ``get_fwd_recv_ops``, ``get_bwd_recv_ops``, ``set_local_bwd_input``,
  overridden: PyTorch takes memory to receive all microbatches into at once, and keeps it.
* ``_initialize_stages``, overridden: PyTorch looks ahead with one microbatch to learn what the stages send, outside DDP's
  ``no_sync``, which leaves DDP waiting for a backward. ``_prepare_forward_infra``, ``_prepare_backward_infra``,
  ``_send_meta`` and ``_recv_meta``, overridden: a module that raises then leaves the other ranks waiting for its metadata.
* ``fwd_recv_ops``, ``bwd_recv_ops``, ``_batch_p2p`` and ``_stage_meta``: a step that fails on one rank sends zeros in its
  remaining messages, so that the other ranks end theirs.
* ``_backward``: the split backward, which has no public entry.

By version:

* 2.11, 2.12: only ``_backward`` is used, to measure.
* 2.13: the buffers of the modules (running means, counters) keep what looking ahead did to them, so they are put back here.
* 2.14: puts the buffers back itself (``PipelineStage._pre_metadata_inference_backup``), takes microbatches that are split
  already in ``step`` (not used: 2.13 does not), and from 2.14.1 on can send forwards and backwards through communicators of
  their own (``torch.distributed.config.pipeline_per_direction_p2p``), under which orders for one channel are right as well.
  Its schedules, lowering and split backward are those of 2.13.
* 2.15: a send and a reduction of gradients end where ``WAIT_SEND_F``, ``WAIT_SEND_B`` and ``WAIT_REDUCE_GRAD`` are. Where
  a schedule has none, they are put where PyTorch puts them, and no observer is told of them. What a forward leaves is kept
  otherwise (``kept_forwards``), and receive buffers are taken when they are needed. Messages can have a communicator for
  each edge and direction (``pipeline_per_edge_p2p``, in place of 2.14's). A step that fails waits for its sends, which may
  never end: ``schedules._PendingSendTracker`` is replaced while a step runs.

Every entry point first calls ``require_torch``, which refuses untested versions. The
tests run against the installed one.
"""

from pipeplan.extensions.training.runtime.torch_internals.look_ahead import NeighbourFailed
from pipeplan.extensions.training.runtime.torch_internals.orders import actions_of
from pipeplan.extensions.training.runtime.torch_internals.runtime import Feed, Loss, Runtime
from pipeplan.extensions.training.runtime.torch_internals.stage import Backward, ObservedStage, Observer, Unobserved

__all__ = [
    "Backward",
    "Feed",
    "Loss",
    "NeighbourFailed",
    "ObservedStage",
    "Observer",
    "Runtime",
    "Unobserved",
    "actions_of",
]
