"""Marks the ops of Megatron-core's schedules for PyTorch's profiler, so that pipeplan can read the traces of the run.

Two lines in the training script, once the process groups are there::

    from mark_megatron import mark
    mark(parallel_state.get_pipeline_model_parallel_rank(), parallel_state.get_pipeline_model_parallel_world_size())

Then train with the profiler on (``--profile --use-pytorch-profiler --profile-ranks`` and all ranks of one replica), and

    pipeplan profile --from TRACES -o costs.yaml

Megatron has received what an op needs before the op begins, so its messages lie between the marks. Works for 1F1B and
interleaved 1F1B of megatron-core 0.16; overlapped pairs (``--overlap-moe-expert-parallel-comm``) run other functions.
"""

from __future__ import annotations

from typing import Any

from megatron.core.pipeline_parallel import schedules
from torch.profiler import record_function


def mark(rank: int, ranks: int) -> None:
    """Mark every forward and backward of this pipeline rank of several from now on.

    A backward is not told its microbatch: it is that of the output that it starts from.
    """
    forward, backward = schedules.forward_step, schedules.backward_step

    def forward_step(*given: Any, current_microbatch: int, vp_stage: int | None = None, **others: Any) -> Any:
        stage = (vp_stage or 0) * ranks + rank
        with record_function(f"PP:{stage}F{current_microbatch}"):
            output, tokens = forward(*given, current_microbatch=current_microbatch, vp_stage=vp_stage, **others)
        _tensor(output).mark = f"PP:{stage}B{current_microbatch}"
        return output, tokens

    def backward_step(received: Any, output: Any, *others: Any) -> Any:
        with record_function(_tensor(output).mark):
            return backward(received, output, *others)

    schedules.forward_step, schedules.backward_step = forward_step, backward_step


def _tensor(output: Any) -> Any:
    """The tensor that Megatron hands on; without interleaving it is in a list."""
    return output[0] if isinstance(output, list) else output
