"""What a pipeline trains: a model as a sequence of layers, its data and its loss; built in, or loaded by name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pipeplan.errors import InputError, UnknownNameError

Builder = Callable[[], nn.Module]
Batch = Callable[[torch.Generator], tuple[Tensor, Tensor]]
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Model:
    """A model that can be cut between any two of its layers.

    Attributes
    ----------
    name
        What to call it.
    layers
        A builder per layer, in order: called without arguments, each returns a module that takes the one tensor returned
        by the layer before and returns one tensor. A rank builds only its own layers, and seeds the generator with the
        layer's number before each, so that the parameters do not depend on where the model is cut.
    batch
        One microbatch from a generator on the CPU: the first layer's input and the loss's targets, microbatch first.
    loss
        Of the last layer's output and the targets, the mean over the microbatch.
    weights
        How long each layer takes relative to the others, for even cuts; None: all the same.
    dtype
        Of the parameters: ``float32`` or ``bfloat16``.
    """

    name: str
    layers: tuple[Builder, ...]
    batch: Batch
    loss: Loss
    weights: tuple[float, ...] | None = None
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if not self.layers:
            raise InputError(f"model {self.name} has no layers")
        for number, builder in enumerate(self.layers):
            if isinstance(builder, nn.Module) or not callable(builder):
                raise InputError(
                    f"layer {number} of model {self.name} is a {type(builder).__name__}; "
                    "give a function without arguments that builds the layer"
                )
        if self.weights is not None and len(self.weights) != len(self.layers):
            raise InputError(f"model {self.name} has {len(self.layers)} layers and {len(self.weights)} weights")

    def build(self, first: int, stop: int, *, seed: int, device: torch.device) -> nn.Sequential:
        """Layers ``first`` to ``stop - 1`` as one module, on a device, in the model's dtype.

        Raises
        ------
        InputError
            If a builder raises or returns no module.
        """
        layers = [self._layer(number, seed, device) for number in range(first, stop)]
        return nn.Sequential(*layers).to(device=device, dtype=getattr(torch, self.dtype))

    def _layer(self, number: int, seed: int, device: torch.device) -> nn.Module:
        torch.manual_seed(seed * 1_000_003 + number)
        try:
            with device:
                layer = self.layers[number]()
        except Exception as error:
            raise InputError(f"building layer {number} of model {self.name} raised {_said(error)}") from error
        if not isinstance(layer, nn.Module):
            raise InputError(f"layer {number} of model {self.name} is a {type(layer).__name__}, not a torch.nn.Module")
        return layer

    def microbatch(self, step: int, number: int, *, seed: int) -> tuple[Tensor, Tensor]:
        """Input and targets of one microbatch of one step; the same on every rank.

        Raises
        ------
        InputError
            If the model's function raises or returns anything but two tensors.
        """
        generator = torch.Generator().manual_seed((seed * 1_000_003 + step) * 1_000_003 + number)
        try:
            made: Any = self.batch(generator)
        except Exception as error:
            raise InputError(f"the batch function of model {self.name} raised {_said(error)}") from error
        if not (isinstance(made, tuple) and len(made) == 2 and all(isinstance(part, Tensor) for part in made)):
            raise InputError(f"the batch function of model {self.name} must return (input, targets), two tensors")
        return made[0], made[1]


@dataclass(frozen=True)
class GPT:
    """Sizes of a small GPT: sequences of ``length`` tokens, ``microbatch`` of them at once."""

    blocks: int
    width: int
    heads: int
    length: int
    vocabulary: int
    microbatch: int

    def model(self, name: str) -> Model:
        """The model: embedding, blocks and head, each a layer."""
        block = 12 * self.width**2 + 2 * self.length * self.width
        return Model(
            name=name,
            layers=(self.embedding, *(self.block,) * self.blocks, self.head),
            batch=self.batch,
            loss=cross_entropy,
            weights=(0.02 * block, *(float(block),) * self.blocks, float(self.width * self.vocabulary)),
        )

    def embedding(self) -> nn.Module:
        """The first layer."""
        return Embedding(self)

    def block(self) -> nn.Module:
        """A layer in the middle."""
        return Block(self)

    def head(self) -> nn.Module:
        """The last layer."""
        return nn.Sequential(nn.LayerNorm(self.width), nn.Linear(self.width, self.vocabulary, bias=False))

    def batch(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Sequences that count up in steps from 1 to 3, and the token that follows each: something to learn."""
        shape = (self.microbatch, 1)
        start = torch.randint(self.vocabulary, shape, generator=generator)
        step = torch.randint(1, 4, shape, generator=generator)
        tokens = (start + step * torch.arange(self.length + 1)) % self.vocabulary
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


class Embedding(nn.Module):
    """Tokens and positions as vectors."""

    def __init__(self, size: GPT) -> None:
        super().__init__()
        self.token = nn.Embedding(size.vocabulary, size.width)
        self.position = nn.Embedding(size.length, size.width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Shape (microbatch, length) to (microbatch, length, width)."""
        return self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))


class Block(nn.Module):
    """Causal attention and a perceptron, each behind a layer norm and beside a residual path."""

    def __init__(self, size: GPT) -> None:
        super().__init__()
        width = size.width
        self.heads = size.heads
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Shape (microbatch, length, width) to the same."""
        x = x + self._attention(self.norm_attention(x))
        return x + self.mlp(self.norm_mlp(x))

    def _attention(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        heads = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*heads.unbind(0), is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean over all tokens, in float32."""
    return nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def _llama_3_8b() -> Model:
    from pipeplan.runtime.llama import LLAMA_3_8B

    return LLAMA_3_8B.model("llama-3-8b")


_TINY = GPT(blocks=8, width=64, heads=4, length=32, vocabulary=96, microbatch=2)
_SMALL = GPT(blocks=8, width=512, heads=8, length=128, vocabulary=512, microbatch=2)

BUILT_IN: dict[str, Callable[[], Model]] = {
    "gpt-tiny": lambda: _TINY.model("gpt-tiny"),
    "gpt-small": lambda: _SMALL.model("gpt-small"),
    "llama-3-8b": _llama_3_8b,
}
"""The models that need no code of the user's: ``gpt-tiny`` trains in milliseconds; a block of ``gpt-small`` takes some 15
ms forward on one CPU thread; ``llama-3-8b`` has the shape of Llama 3's 8 billion parameters, in bfloat16."""


def load_model(name: str, *, dtype: str | None = None) -> Model:
    """A built-in model by its name, or what ``function()`` of a module returns, by ``module:function``.

    Modules are looked for in the current folder too.

    Raises
    ------
    UnknownNameError
        For a name that is not built in, or a function that the module does not have.
    InputError
        If the module cannot be imported, or the function raises or does not return a :class:`Model`.
    """
    if dtype not in (None, "float32", "bfloat16"):
        raise InputError(f"a model's dtype is float32 or bfloat16, not {dtype}")
    model = _called(name) if ":" in name else _built_in(name)
    return model if dtype is None else replace(model, dtype=dtype)


def _built_in(name: str) -> Model:
    if name not in BUILT_IN:
        raise UnknownNameError("model", name, [*BUILT_IN, "module:function"])
    return BUILT_IN[name]()


def _called(name: str) -> Model:
    module_name, _, function_name = name.partition(":")
    module = _imported(module_name)
    function = getattr(module, function_name, None)
    if not callable(function):
        known = [known for known, value in vars(module).items() if callable(value)]
        raise UnknownNameError(f"function of module {module_name}", function_name, known)
    try:
        model = function()
    except Exception as error:
        raise InputError(f"model function {name} raised {_said(error)}") from error
    if not isinstance(model, Model):
        raise InputError(f"model function {name} returned a {type(model).__name__}, not a pipeplan.runtime.Model")
    return model


def _imported(name: str) -> Any:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise InputError(f"cannot import the model's module '{name}': {_said(error)}") from error


def _said(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
