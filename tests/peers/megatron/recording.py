"""The order in which Megatron-core's schedule functions run, for any shape and quickly: their steps only note themselves.

The functions run for one rank after the other, on PyTorch's process group that transfers nothing; what a step computes is
left out, what makes the order is Megatron's.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
from megatron.core import parallel_state
from megatron.core.enums import ModelType
from megatron.core.pipeline_parallel import combined_1f1b, schedules

from tests.peers.megatron.flags import Configured
from tests.peers.megatron.on_cpu import on_cpu
from tests.peers.stand_ins import ranks_of


class Chunk(torch.nn.Module):
    """A model chunk that computes nothing."""

    def __init__(self, config: Any, vp_stage: int) -> None:
        super().__init__()
        self.config, self.vp_stage, self.model_type = config, vp_stage, ModelType.encoder_or_decoder


@contextmanager
def one_rank(rank: int, ranks: int) -> Iterator[Callable[[Configured], list[tuple[str, ...]]]]:
    """Within, what this rank runs of a configuration: one op after the other, and overlapped pairs as pairs."""
    with ranks_of(ranks, rank), on_cpu():
        try:
            parallel_state.initialize_model_parallel(
                pipeline_model_parallel_size=ranks, create_gloo_process_groups=False
            )
            yield lambda asked: recorded(asked, rank)
        finally:
            parallel_state.destroy_model_parallel()


def recorded(asked: Configured, rank: int) -> list[tuple[str, ...]]:
    """What this rank runs: ops, pairs, and the collectives that the configuration's functions of them note."""
    config = asked.config
    ranks, chunks = config.pipeline_model_parallel_size, config.virtual_pipeline_model_parallel_size or 1
    parallel_state.set_virtual_pipeline_model_parallel_world_size(config.virtual_pipeline_model_parallel_size)
    heard: list[tuple[str, ...]] = []
    if config.param_sync_func is not None:
        config.param_sync_func = [noting(heard, f"{chunk * ranks + rank}UNSHARD") for chunk in range(chunks)]
        reductions = [noting(heard, f"{chunk * ranks + rank}REDUCE_GRAD") for chunk in range(chunks)]
        config.grad_sync_func = reductions if chunks > 1 else reductions[0]
        config.no_sync_func = nullcontext

    def made(stage: int, microbatch: int | None) -> torch.Tensor:
        output = torch.zeros(1)
        output.place = (stage, microbatch)
        return output

    def forward_step(*given: Any, current_microbatch: int, vp_stage: int = 0, **_: Any) -> tuple[Any, torch.Tensor]:
        stage = vp_stage * ranks + rank
        heard.append((f"{stage}F{current_microbatch}",))
        output = made(stage, current_microbatch)
        return [output] if isinstance(given[4], list) else output, torch.tensor(0)

    def backward_step(input_tensor: Any, output_tensor: Any, *_: Any, **__: Any) -> Any:
        output = output_tensor[0] if isinstance(output_tensor, list) else output_tensor
        heard.append(("{}B{}".format(*output.place),))
        return [torch.zeros(1)] if isinstance(input_tensor, list) else torch.zeros(1)

    def combined_step(
        *given: Any, f_model_chunk_id: int | None = None, current_microbatch: int | None = None, **how: Any
    ):
        # In the order of Megatron's signature: the forward's model is the third, the backward's the seventh.
        forward, backward = given[2], given[6]
        pair, output = [], None
        if forward is not None:
            if how.get("pre_forward") is not None:
                how["pre_forward"]()
            stage = (f_model_chunk_id or 0) * ranks + rank
            pair.append(f"{stage}F{current_microbatch}")
            output = made(stage, current_microbatch)
        if backward is not None:
            if how.get("pre_backward") is not None:
                how["pre_backward"]()
            pair.append("{}B{}".format(*given[8].place))
        heard.append(tuple(pair))
        grad = torch.zeros(1)
        if how.get("post_forward") is not None:
            how["post_forward"](output)
        if how.get("post_backward") is not None:
            how["post_backward"](grad)
        return output, torch.tensor(0), grad

    with (
        patch.object(schedules, "forward_step", forward_step),
        patch.object(schedules, "backward_step", backward_step),
        patch.object(combined_1f1b, "combined_forward_backward_step", combined_step),
    ):
        schedules.get_forward_backward_func()(
            forward_step_func=None,
            data_iterator=[None] * chunks,
            model=[Chunk(config, chunk) for chunk in range(chunks)],
            num_microbatches=asked.global_batch_size // asked.micro_batch_size,
            seq_length=1,
            micro_batch_size=asked.micro_batch_size,
        )
    return heard


def noting(heard: list[tuple[str, ...]], action: str) -> Callable[[Any], None]:
    return lambda _: heard.append((action,))
