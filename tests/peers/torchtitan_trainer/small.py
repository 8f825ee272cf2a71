"""A small llama for torchtitan's Trainer, by its extension points: a model, a data loader and a tokenizer of our own.

``ConfigManager`` takes it with ``--module tests.peers.torchtitan_trainer.small --config cross_entropy``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.components.loss import ChunkedLossWrapper
from torchtitan.components.tokenizer import BaseTokenizer
from torchtitan.models.common import ComplexRoPE, Embedding, Linear, RMSNorm
from torchtitan.models.common.attention import ScaledDotProductAttention
from torchtitan.models.llama3 import (
    _EMBEDDING_INIT,
    _NORM_INIT,
    Llama3Model,
    _build_llama3_layers,
    _output_linear_init,
    model_registry,
)
from torchtitan.models.llama3.config_registry import llama3_debugmodel_ce_loss
from torchtitan.trainer import Trainer

from tests.peers.torchtitan_trainer.jobs import LAYERS

WIDTH = 32
WORDS = 64


class Tokens(BaseDataLoader):
    """The same sequences for every run, dealt to the data-parallel ranks one after the other."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        pass

    def __init__(
        self, config: Config, *, dp_world_size: int, dp_rank: int, seq_len: int, local_batch_size: int, **_: Any
    ) -> None:
        self.replicas, self.replica, self.length, self.batch = dp_world_size, dp_rank, seq_len, local_batch_size

    def __iter__(self) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
        made = torch.Generator().manual_seed(0)
        while True:
            shape = (self.batch, self.replicas, self.length + 1)
            tokens = torch.randint(WORDS, shape, generator=made)[:, self.replica]
            yield {"input": tokens[:, :-1].contiguous()}, tokens[:, 1:].contiguous()

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


class NoTokenizer(BaseTokenizer):
    """For a data loader that has its tokens already."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseTokenizer.Config):
        pass

    def __init__(self, config: Config, **_: Any) -> None:
        super().__init__()

    def encode(self, *_: Any, **__: Any) -> list[int]:
        raise NotImplementedError

    def decode(self, *_: Any, **__: Any) -> str:
        raise NotImplementedError

    def get_vocab_size(self) -> int:
        return WORDS


def cross_entropy() -> Trainer.Config:
    """torchtitan's debug configuration with plain cross entropy, of a smaller model, without recomputation."""
    config = llama3_debugmodel_ce_loss()
    config.model_spec = replace(model_registry("debugmodel"), model=_model())
    config.loss.global_vocab_size = WORDS
    config.dataloader, config.tokenizer = Tokens.Config(), NoTokenizer.Config()
    config.activation_checkpoint = None
    config.training.seq_len = 16
    config.training.max_norm = 1e9
    config.training.mixed_precision_param = "float32"
    config.metrics.log_freq = 1_000_000
    config.comm.trace_buf_size = 0
    config.debug.enable_structured_logging = False
    return config


def chunked() -> Trainer.Config:
    """The same with torchtitan's default loss."""
    config = cross_entropy()
    config.loss = ChunkedLossWrapper.Config(loss_fn=config.loss)
    return config


def _model() -> Llama3Model.Config:
    layers = _build_llama3_layers(
        n_layers=LAYERS,
        dim=WIDTH,
        n_heads=2,
        hidden_dim=WIDTH,
        rope=ComplexRoPE.Config(dim=WIDTH // 2, max_seq_len=64, theta=500000, scaling="llama"),
        attn_backend="flex",
    )
    for layer in layers:
        # Compiling flexible attention for the CPU takes minutes.
        layer.attention.inner_attention = ScaledDotProductAttention.Config()
    return Llama3Model.Config(
        dim=WIDTH,
        vocab_size=WORDS,
        tok_embeddings=Embedding.Config(num_embeddings=WORDS, embedding_dim=WIDTH, param_init=_EMBEDDING_INIT),
        norm=RMSNorm.Config(normalized_shape=WIDTH, param_init=_NORM_INIT),
        lm_head=Linear.Config(in_features=WIDTH, out_features=WORDS, param_init=_output_linear_init(WIDTH)),
        layers=layers,
    )
