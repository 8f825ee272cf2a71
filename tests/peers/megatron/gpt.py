"""Megatron-core's own ``GPTModel`` in stages: its layers, its experts, its embedding, its loss, its further tokens."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec, get_gpt_mtp_block_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.pipeline_parallel.schedules import get_forward_backward_func
from megatron.core.tensor_parallel.random import CudaRNGStatesTracker
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.moe import moe_utils, token_dispatcher
from megatron.core.transformer.multi_token_prediction import MTPLossLoggingHelper
from megatron.core.transformer.transformer_layer import get_transformer_layer_offset

from tests.peers.megatron.flags import MIXTURE_OF_EXPERTS, Configured

WORDS, TOKENS = 32, 6
SMALL = {
    "hidden_size": 16,
    "num_attention_heads": 2,
    "use_cpu_initialization": True,
    "attention_dropout": 0.0,
    "hidden_dropout": 0.0,
    "masked_softmax_fusion": False,
    "bias_dropout_fusion": False,
    "persist_layer_norm": False,
    "gradient_accumulation_fusion": False,
    "add_bias_linear": False,
    "moe_router_dtype": "fp64",
    "moe_router_load_balancing_type": "none",
}
"""Of a small model on a CPU: nothing random, nothing fused."""


@contextmanager
def without_gpu() -> Iterator[None]:
    """Within, the model asks no GPU for anything.

    Without dropout it needs no state of random numbers; how many tokens go to which expert is on the CPU already, and a name
    that is imported with Transformer Engine alone, and asked for without, is there.
    """

    def on_cpu_already(tensor: Any, as_numpy: bool = False, record_stream: bool = False) -> Any:
        return tensor.numpy() if as_numpy and torch.is_tensor(tensor) else tensor

    with ExitStack() as stack:
        stack.enter_context(patch.object(CudaRNGStatesTracker, "fork", lambda *_: nullcontext()))
        stack.enter_context(patch.object(token_dispatcher, "maybe_move_tensor_to_cpu", on_cpu_already))
        stack.enter_context(patch.object(moe_utils, "te_general_gemm", None, create=True))
        yield


def gpt(config: TransformerConfig, first: bool = True, last: bool = True, vp_stage: int | None = None) -> GPTModel:
    layer = get_gpt_layer_local_spec(
        num_experts=config.num_moe_experts, moe_grouped_gemm=False, normalization="LayerNorm"
    )
    further = None
    if config.mtp_num_layers:
        further = get_gpt_mtp_block_spec(config, layer, use_transformer_engine=False, vp_stage=vp_stage)
    # Overlapped pairs are configured for half precision; the numbers here are float64, so that they can be compared.
    config.bf16 = False
    model = GPTModel(
        config,
        layer,
        vocab_size=WORDS,
        max_sequence_length=TOKENS,
        pre_process=first,
        post_process=last,
        position_embedding_type="rope",
        mtp_block_spec=further,
        vp_stage=vp_stage,
    )
    return model.double()


def whole_gpt(done: Configured) -> GPTModel:
    """The model on one rank, without overlap, the same in each process; for this there must be no pipeline."""
    MTPLossLoggingHelper.tracker = {}  # It keeps the number of layers of further tokens of the model before.
    torch.manual_seed(0)
    alike = ("num_layers", "mtp_num_layers", *MIXTURE_OF_EXPERTS)
    given = {name: getattr(done.config, name) for name in alike}
    return gpt(TransformerConfig(**given, params_dtype=torch.float64, **SMALL))


def stages_of(done: Configured, whole: GPTModel) -> list[tuple[GPTModel, dict[str, str]]]:
    """This rank's stages with the whole model's weights, and what the whole model calls each of their parameters."""
    config, found = done.config, []
    for chunk in range(config.virtual_pipeline_model_parallel_size or 1):
        vp_stage = chunk if config.virtual_pipeline_model_parallel_size else None
        first = parallel_state.is_pipeline_first_stage(ignore_virtual=False, vp_stage=vp_stage)
        last = parallel_state.is_pipeline_last_stage(ignore_virtual=False, vp_stage=vp_stage)
        stage = gpt(config, first, last, vp_stage)
        start = get_transformer_layer_offset(config, vp_stage)
        names = {name: renumbered(name, start) for name, _ in stage.named_parameters()}
        weights = dict(whole.named_parameters())
        with torch.no_grad():
            for name, parameter in stage.named_parameters():
                parameter.copy_(weights[names[name]])
        found.append((stage, names))
    return found


def renumbered(name: str, start: int) -> str:
    """A parameter's name with its layer counted over the whole model."""
    if not name.startswith("decoder.layers."):
        return name
    number, _, rest = name.removeprefix("decoder.layers.").partition(".")
    return f"decoder.layers.{int(number) + start}.{rest}"


def one_step(stages: list[GPTModel], batches: torch.Tensor, micro_batch_size: int) -> None:
    """Forwards and backwards of all microbatches, of shape (microbatches, sequences, tokens), by Megatron's function."""
    positions = torch.arange(TOKENS).expand(micro_batch_size, TOKENS)
    masked = torch.triu(torch.ones(1, 1, TOKENS, TOKENS, dtype=torch.bool), 1)

    def step(data: Iterator[torch.Tensor], model: GPTModel, return_schedule_plan: bool = False) -> Any:
        tokens = next(data)
        make = model.build_schedule_plan if return_schedule_plan else model
        output = make(tokens, positions, masked, labels=tokens.roll(-1, 1), loss_mask=torch.ones(tokens.shape))
        return output, lambda loss: (loss.mean(), {})

    get_forward_backward_func()(
        forward_step_func=step,
        data_iterator=[iter(batches) for _ in stages],
        model=stages,
        num_microbatches=len(batches),
        seq_length=TOKENS,
        micro_batch_size=micro_batch_size,
    )


def gradients(stages: list[tuple[GPTModel, dict[str, str]]]) -> dict[str, torch.Tensor]:
    """By the whole model's names, summed over the ranks of the pipeline: the embedding is on the last stage too where
    that predicts further tokens.
    """
    found: dict[str, torch.Tensor] = {}
    for stage, names in stages:
        for name, parameter in stage.named_parameters():
            grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            found[names[name]] = found.get(names[name], 0) + grad
    everywhere: list[Any] = [None] * parallel_state.get_pipeline_model_parallel_world_size()
    dist.all_gather_object(everywhere, found, group=parallel_state.get_pipeline_model_parallel_group())
    summed: dict[str, torch.Tensor] = {}
    for each in everywhere:
        for name, grad in each.items():
            summed[name] = summed.get(name, 0) + grad
    return summed
