"""Built-in models, small GPTs and Llama 3 8B, and loading models by name.

The shape of Llama 3 8B is from Dubey et al., "The Llama 3 Herd of Models", 2024, table 3.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any, cast

import torch
from torch import Tensor, nn

from pipeplan.costs import Role
from pipeplan.extensions.training.options import ModelOptions
from pipeplan.extensions.training.runtime.model import USERS_ERRORS, Model, cross_entropy, error_line
from pipeplan.foundation.errors import InputError, UnknownNameError
from pipeplan.model import require_text, shortened


def roles_of(blocks: int) -> tuple[Role, ...]:
    """Return the roles of an embedding, this many blocks, and a head."""
    block: list[Role] = ["block"]
    return "embedding", *block * blocks, "head"


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
        """Return the model: embedding, blocks and head are layers."""
        # Multiplications per token: 12 width^2 in the weights of a block, 2 length width in its attention.
        block = 12 * self.width**2 + 2 * self.length * self.width
        return Model(
            name=name,
            layers=(self.embedding, *(self.block,) * self.blocks, self.head),
            batch=self.batch,
            loss=cross_entropy,
            weights=(0.02 * block, *(float(block),) * self.blocks, float(self.width * self.vocabulary)),
            roles=roles_of(self.blocks),
        )

    def embedding(self) -> nn.Module:
        """Build the first layer."""
        return Embedding(self)

    def block(self) -> nn.Module:
        """Build a layer in the middle."""
        return GPTBlock(self)

    def head(self) -> nn.Module:
        """Build the last layer."""
        return nn.Sequential(nn.LayerNorm(self.width), nn.Linear(self.width, self.vocabulary, bias=False))

    def batch(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return sequences that count up in steps of 1 to 3, and the next token of each: a pattern that can be learned."""
        shape = (self.microbatch, 1)
        start = torch.randint(self.vocabulary, shape, generator=generator)
        step = torch.randint(1, 4, shape, generator=generator)
        tokens = (start + step * torch.arange(self.length + 1)) % self.vocabulary
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


class Embedding(nn.Module):
    """Embedding of tokens and positions."""

    def __init__(self, size: GPT) -> None:
        super().__init__()
        self.token = nn.Embedding(size.vocabulary, size.width)
        self.position = nn.Embedding(size.length, size.width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens of shape (microbatch, length) to vectors of shape (microbatch, length, width)."""
        return self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))


class GPTBlock(nn.Module):
    """Causal attention and an MLP, each with a layer norm before it and a residual connection."""

    def __init__(self, size: GPT) -> None:
        super().__init__()
        width = size.width
        self.heads = size.heads
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Map shape (microbatch, length, width) to the same."""
        x = x + self._attention(self.norm_attention(x))
        return x + self.mlp(self.norm_mlp(x))

    def _attention(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        heads = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*heads.unbind(0), is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


@dataclass(frozen=True)
class LlamaSizes:
    """Sizes of a Llama model: sequences of ``length`` tokens, ``microbatch`` of them at once."""

    layers: int
    width: int
    heads: int
    key_value_heads: int
    hidden: int
    vocabulary: int
    length: int
    microbatch: int = 1
    rope_theta: float = 500_000.0

    def model(self, name: str) -> Model:
        """Return the model: embedding, transformer layers and head are layers."""
        return Model(
            name=name,
            layers=(self.embedding, *(self.layer,) * self.layers, self.head),
            batch=self.batch,
            loss=cross_entropy,
            weights=(0.05, *(1.0,) * self.layers, 2.0),
            dtype="bfloat16",
            roles=roles_of(self.layers),
        )

    def embedding(self) -> nn.Module:
        """Build the embedding of tokens."""
        return nn.Embedding(self.vocabulary, self.width)

    def layer(self) -> nn.Module:
        """Build a transformer layer."""
        return LlamaLayer(self)

    def head(self) -> nn.Module:
        """Build the final norm and the projection to the vocabulary."""
        return nn.Sequential(nn.RMSNorm(self.width), nn.Linear(self.width, self.vocabulary, bias=False))

    def batch(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return random tokens, and random targets."""
        shape = (2, self.microbatch, self.length)
        tokens, targets = torch.randint(self.vocabulary, shape, generator=generator)
        return tokens, targets


LLAMA_3_8B = LlamaSizes(
    layers=32, width=4096, heads=32, key_value_heads=8, hidden=14336, vocabulary=128_256, length=8192
)


class LlamaLayer(nn.Module):
    """Attention and a gated MLP, each with an RMS norm before it and a residual connection."""

    def __init__(self, size: LlamaSizes) -> None:
        super().__init__()
        width, head = size.width, size.width // size.heads
        self.size = size
        self.norm_attention, self.norm_mlp = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, size.key_value_heads * head, bias=False)
        self.value = nn.Linear(width, size.key_value_heads * head, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, size.hidden, bias=False)
        self.up = nn.Linear(width, size.hidden, bias=False)
        self.down = nn.Linear(size.hidden, width, bias=False)
        turns = _turns(size, head)
        self.register_buffer("cosine", turns.cos(), persistent=False)
        self.register_buffer("sine", turns.sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map shape (microbatch, length, width) to the same."""
        x = x + self._attention(self.norm_attention(x))
        hidden = self.norm_mlp(x)
        return x + self.down(nn.functional.silu(self.gate(hidden)) * self.up(hidden))

    def _attention(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape

        def split(projected: Tensor) -> Tensor:
            return projected.view(batch, length, -1, width // self.size.heads).transpose(1, 2)

        query, key, value = split(self.query(x)), split(self.key(x)), split(self.value(x))
        mixed = nn.functional.scaled_dot_product_attention(
            self._turned(query), self._turned(key), value, is_causal=True, enable_gqa=True
        )
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))

    def _turned(self, x: Tensor) -> Tensor:
        """Apply rotary position embedding: rotate each pair of components by the angle of its position."""
        first, second = x.chunk(2, dim=-1)
        cosine, sine = self.cosine, self.sine
        return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


def _turns(size: LlamaSizes, head: int) -> Tensor:
    """Return the angle of each position and pair of components, shape (length, head / 2)."""
    frequency = size.rope_theta ** (-torch.arange(0, head, 2, dtype=torch.float32) / head)
    return torch.outer(torch.arange(size.length, dtype=torch.float32), frequency)


_TINY = GPT(blocks=8, width=64, heads=4, length=32, vocabulary=96, microbatch=2)
_SMALL = GPT(blocks=8, width=512, heads=8, length=128, vocabulary=512, microbatch=2)

BUILT_IN: dict[str, Callable[[], Model]] = {
    "gpt-tiny": lambda: _TINY.model("gpt-tiny"),
    "gpt-small": lambda: _SMALL.model("gpt-small"),
    "llama-3-8b": lambda: LLAMA_3_8B.model("llama-3-8b"),
}
"""Built-in models. ``gpt-tiny`` trains in milliseconds; a block of ``gpt-small`` takes 15 ms forward on one CPU thread;
``llama-3-8b`` has the shape of Llama 3 with 8 billion parameters, in bfloat16."""


def load_model(name: str, *, dtype: str | None = None, timeout: float = 120.0) -> Model:
    """Load a built-in model by its name, or call a function of a module, given as ``module:function``, that returns one.

    Modules are also searched in the current folder. Their output goes to stderr, because stdout is for the answer.

    Parameters
    ----------
    name
        Name of the model or the function.
    dtype
        Type of the parameters, instead of the model's own.
    timeout
        Seconds that the import and the function may take.

    Raises
    ------
    UnknownNameError
        If the name is not built in, or the module has no such function.
    InputError
        If the module cannot be imported, or the function raises an exception, ends the process, exceeds the timeout or does
        not return a :class:`Model`.
    """
    if dtype not in (None, "float32", "bfloat16"):
        raise InputError(f"invalid dtype '{dtype}': expected float32 or bfloat16")
    require_text(name, "the model's name", field="model")
    model = in_time(lambda: _called(name), timeout, name) if ":" in name else _built_in(name)
    return model if dtype is None else replace(model, dtype=dtype)


def model_for(options: ModelOptions) -> Model:
    """Return the model that options name or contain. Raises the errors of :func:`load_model`."""
    if isinstance(options.model, str):
        return load_model(options.model, dtype=options.dtype, timeout=options.timeout)
    return cast("Model", options.model)


def _built_in(name: str) -> Model:
    if name not in BUILT_IN:
        raise UnknownNameError("model", name, [*BUILT_IN, "module:function"])
    return BUILT_IN[name]()


def _called(name: str) -> Model:
    module_name, _, function_name = name.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), function_name)):
        raise InputError(f"invalid model '{shortened(name, 60)}': expected module:function", field="model")
    module = _imported(module_name)
    function = getattr(module, function_name, None)
    if not callable(function):
        names = [name for name, value in vars(module).items() if callable(value) and name.isidentifier()]
        raise UnknownNameError(f"function of module {module_name}", function_name, names)
    try:
        model = function()
    except USERS_ERRORS as error:
        raise InputError(f"model function {name} raised {error_line(error)}") from error
    if not isinstance(model, Model):
        raise InputError(f"model function {name} returned {_a(model)}, not a pipeplan.runtime.Model")
    return model


def _a(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def in_time(load: Callable[[], Model], timeout: float, name: str) -> Model:
    """Call a user's function with a timeout, in a daemon thread: one that never returns ends with this process.

    Raises
    ------
    InputError
        If it has not returned after ``timeout`` seconds. Exceptions of the function are raised, too.
    """
    answers: Queue[Model | BaseException] = Queue()

    def work() -> None:
        try:
            answers.put(load())
        except BaseException as error:
            answers.put(error)

    # A hanging function cannot be stopped, so it runs in a daemon thread.
    with redirect_stdout(sys.stderr):
        Thread(target=work, daemon=True, name="the model's function").start()
        try:
            answer = answers.get(timeout=timeout)
        except Empty:
            raise InputError(
                f"model function {name} did not return within {timeout:g} s; allow more time with timeout",
                field="timeout",
            ) from None
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _imported(name: str) -> Any:
    # As `python -m` does: the module may be in the current folder.
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except USERS_ERRORS as error:
        raise InputError(f"cannot import the model's module '{name}': {error_line(error)}") from error
