"""Transformations from one schedule to another."""

from pipeplan.passes.activations import insert_offload, insert_recompute, without_recompute
from pipeplan.passes.backward import Rearrangement, merge_backward, retime, split_backward
from pipeplan.passes.communication import Receives, insert_communication, without_communication
from pipeplan.passes.sharding import (
    ACTIVE_STAGES,
    Lookahead,
    ShardingRule,
    add_megatron_collectives,
    add_reduce_grad,
    add_unshard_reshard,
    without_collectives,
)
from pipeplan.passes.torch_lowering import (
    add_waits,
    in_order_of_losses,
    lower_for_torch,
    require_expressible,
    without_waits,
)

__all__ = [
    "ACTIVE_STAGES",
    "Lookahead",
    "Rearrangement",
    "Receives",
    "ShardingRule",
    "add_megatron_collectives",
    "add_reduce_grad",
    "add_unshard_reshard",
    "add_waits",
    "in_order_of_losses",
    "insert_communication",
    "insert_offload",
    "insert_recompute",
    "lower_for_torch",
    "merge_backward",
    "require_expressible",
    "retime",
    "split_backward",
    "without_collectives",
    "without_communication",
    "without_recompute",
    "without_waits",
]
