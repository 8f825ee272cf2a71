"""A small model in stages, as Megatron-core's schedule functions take it, that notes what it runs.

A layer is two products with a matrix, ``attention`` and ``mlp``, each with the two halves of its backward apart where weight
gradients are delayed. In overlapped pairs the stages run as Megatron's own ``TransformerModelChunkSchedulePlan`` and
``TransformerLayerSchedulePlan``, whose nodes hold these products in place of attention and experts.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from megatron.core.enums import ModelType
from megatron.core.models.common.model_chunk_schedule_plan import (
    ModelChunkState,
    TransformerLayerSchedulePlan,
    TransformerModelChunkSchedulePlan,
)
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.pipeline_parallel.utils import NoopScheduleNode, ScheduleNode, get_comp_stream
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.module import MegatronModule

try:
    from megatron.core.models.common.utils import LayerState, TransformerLayerNode

    ATTENTION = "pre_dispatch_computation"
except ImportError:  # an earlier release
    from megatron.core.models.gpt.fine_grained_callables import TransformerLayerNode
    from megatron.core.models.gpt.fine_grained_callables import TransformerLayerState as LayerState

    ATTENTION = "attn"

Note = Callable[[str], None]
"""Told of what runs: F forward, B full backward, I backward for inputs, W for weights."""


class Product(torch.autograd.Function):
    """``tanh(x @ weight)``; its backward gives the weight's gradient only where that is not delayed."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, part: "Part", delayed: bool, note: Note
    ) -> torch.Tensor:
        note("F")
        y = torch.tanh(x @ weight)
        ctx.save_for_backward(x, weight, y)
        ctx.part, ctx.delayed, ctx.note = part, delayed, note
        return y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        x, weight, y = ctx.saved_tensors
        ctx.note("I" if ctx.delayed else "B")
        inner = grad * (1 - y * y)
        if ctx.delayed:
            ctx.part.put_off.append((x, inner, ctx.note))
        return inner @ weight.T, None if ctx.delayed else weight_gradient(x, inner), None, None, None


def weight_gradient(x: torch.Tensor, inner: torch.Tensor) -> torch.Tensor:
    return x.flatten(0, -2).T @ inner.flatten(0, -2)


class Part(torch.nn.Module):
    """One product, and the weight gradients that it has put off."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width, width, dtype=torch.float64) / width**0.5)
        self.put_off: list[tuple[torch.Tensor, torch.Tensor, Note]] = []

    def forward(self, x: torch.Tensor, note: Note, delayed: bool = False) -> torch.Tensor:
        return Product.apply(x, self.weight, self, delayed, note)

    def backward_dw(self) -> None:
        x, inner, note = self.put_off.pop(0)
        note("W")
        more = weight_gradient(x, inner)
        self.weight.grad = more if self.weight.grad is None else self.weight.grad + more


class Layer(torch.nn.Module):
    """A transformer layer's place."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention, self.mlp = Part(width), Part(width)

    def forward(self, x: torch.Tensor, note: Note) -> torch.Tensor:
        return self.mlp(self.attention(x, note), note)


class Mark(torch.autograd.Function):
    """A copy; notes the backward where it reaches a stage's output, also of a stage without layers."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, note: Note) -> torch.Tensor:
        ctx.note = note
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        ctx.note("B")
        return grad, None


class Stage(GPTModel):
    """A stage: what Megatron asks of a model's chunk, without attention and experts.

    It is a ``GPTModel`` because overlapped pairs are for these alone; nothing of one is built.
    """

    def __init__(
        self,
        config: TransformerConfig,
        layers: list[Layer],
        first: Part | None,
        last: Part | None,
        vp_stage: int | None,
    ) -> None:
        MegatronModule.__init__(self, config)
        self.model_type = ModelType.encoder_or_decoder
        self.layers = torch.nn.ModuleList(layers)
        self.first, self.last = first, last
        self.pre_process, self.post_process = first is not None, last is not None
        self.vp_stage = vp_stage
        self.input: torch.Tensor | None = None

    def set_input_tensor(self, input_tensor: list[torch.Tensor]) -> None:
        self.input = input_tensor[0]

    def enter(self, batch: torch.Tensor, note: Note) -> torch.Tensor:
        """What the layers take: the batch through the embedding's place, or what the stage before sent."""
        note("F")
        if self.first is not None:
            return self.first(batch, note)
        assert self.input is not None
        return self.input

    def leave(self, x: torch.Tensor, note: Note) -> torch.Tensor:
        return self.last(x, note) if self.last is not None else x

    def forward(self, batch: torch.Tensor, note: Note) -> torch.Tensor:
        x = self.enter(batch, note)
        for layer in self.layers:
            x = layer(x, note)
        return Mark.apply(self.leave(x, note), note)

    def build_schedule_plan(self, batch: torch.Tensor, note: Note) -> "StagePlan":
        return StagePlan(self, batch, note)


class LayerPlan(TransformerLayerSchedulePlan):
    """Megatron's plan of a layer, with the nodes of a layer without experts."""

    def __init__(self, layer: Layer, config: TransformerConfig, event: torch.cuda.Event, note: Note) -> None:
        self.config = config
        self.layer = SimpleNamespace(config=config, layer_number=1, get_inner_quantization_context=nullcontext)
        attention, self.mlp = (
            TransformerLayerNode(
                get_comp_stream(),
                event,
                LayerState(),
                ModelChunkState(),
                lambda node, x, part=part: part(x, note, config.delay_wgrad_compute),
                name=name,
                bwd_dw_callables=part,
                extra_args={"config": config, "delay_wgrad_compute": config.delay_wgrad_compute},
            )
            for name, part in ((ATTENTION, layer.attention), ("mlp", layer.mlp))
        )
        setattr(self, ATTENTION, attention)
        self.moe_dispatch = self.moe_combine = self.mtp_post_process = NoopScheduleNode()


class StagePlan(TransformerModelChunkSchedulePlan):
    """Megatron's plan of a stage, with the nodes of one that has no experts."""

    def __init__(self, stage: Stage, batch: torch.Tensor, note: Note) -> None:
        self._model_chunk_state = ModelChunkState()
        self._event = torch.cuda.Event()
        self.vp_stage = stage.vp_stage
        node = partial(ScheduleNode, stream=get_comp_stream(), event=self._event)
        self.pre_process = node(lambda: Mark.apply(stage.enter(batch, note), note), name="pre_process")
        self._transformer_layers = [LayerPlan(layer, stage.config, self._event, note) for layer in stage.layers]
        self.post_process = node(lambda x: stage.leave(x, note), name="post_process") if stage.post_process else None
