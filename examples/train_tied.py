"""Trains a small language model whose head has the weight of its embedding, on as many ranks as processes.

    torchrun --nproc-per-node 4 examples/train_tied.py
    torchrun --nproc-per-node 4 examples/train_tied.py --schedule zbv

Every rank builds its own stages alone. With 1F1B the embedding is on the first rank and the head on the last: each trains a
copy of the weight, and ``tied`` sums their gradients. With ZBV both are on the first rank. Needs PyTorch; no GPU.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import Tensor, nn

import pipeplan
from pipeplan.foundation.errors import PipeplanError
from pipeplan.runtime import Pipeline


class Block(nn.Module):
    """Causal attention and a perceptron, with residuals."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the input's shape, (batch, length, width)."""
        parts = self.attention(self.norms[0](x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.perceptron(self.norms[1](x))


class Stage(nn.Module):
    """One stage: blocks, behind the embedding on the first stage, before the head on the last one."""

    def __init__(self, number: int, stages: int, options: argparse.Namespace) -> None:
        super().__init__()
        first, last = number == 0, number == stages - 1
        self.embedding = nn.Embedding(options.vocabulary, options.width) if first else None
        self.blocks = nn.Sequential(*(Block(options.width) for _ in range(options.blocks)))
        self.norm = nn.LayerNorm(options.width) if last else None
        self.head = nn.Linear(options.width, options.vocabulary, bias=False) if last else None
        if self.embedding is not None:
            nn.init.normal_(self.embedding.weight, std=options.width**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits on the last stage, else the activations; the first stage takes words."""
        x = self.blocks(x if self.embedding is None else self.embedding(x))
        return x if self.norm is None or self.head is None else self.head(self.norm(x))


def batches(options: argparse.Namespace) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the same batches on every rank: words that mostly follow from the word before, and the next word of each."""
    generator = torch.Generator().manual_seed(0)
    shape = options.microbatches * options.size, 1
    while True:
        words = [torch.randint(options.vocabulary, shape, generator=generator)]
        for _ in range(options.length):
            surprise = torch.rand(shape, generator=generator) < 0.1
            other = torch.randint(options.vocabulary, shape, generator=generator)
            words.append(torch.where(surprise, other, (3 * words[-1] + 1) % options.vocabulary))
        text = torch.cat(words, 1)
        yield text[:, :-1], text[:, 1:]


def loss(logits: Tensor, words: Tensor) -> Tensor:
    """Return the mean over all words of a microbatch."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), words.flatten())


def train(options: argparse.Namespace) -> None:
    """Train, and print the loss of some steps on the first rank."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    plan = pipeplan.simulate(options.schedule, ranks=ranks, microbatches=options.microbatches)
    placement = plan.timeline.schedule.placement
    stages = {}
    for number in placement.stages_on(rank):
        torch.manual_seed(number)
        stages[number] = Stage(number, placement.stages, options)
    tied = [("0.embedding.weight", f"{placement.stages - 1}.head.weight")]
    pipeline = Pipeline(plan, stages, loss, tied=tied)
    optimizer = torch.optim.AdamW(pipeline.parameters(), lr=3e-3)
    for step, (words, following) in zip(range(options.steps), batches(options), strict=False):
        losses = pipeline.broadcast(pipeline.step(words, following))
        norm = pipeline.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0 and (step % 10 == 0 or step == options.steps - 1):
            print(f"step {step:3}  loss {losses.mean():.4f}  gradient norm {norm:.4f}", flush=True)


def parse() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedule", default="1f1b", help="name of a schedule, such as zb-h1 or zbv")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--size", type=int, default=4, help="pieces of text in a microbatch")
    parser.add_argument("--length", type=int, default=32, help="words of a piece")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--blocks", type=int, default=1, help="blocks of a stage")
    parser.add_argument("--vocabulary", type=int, default=64)
    return parser.parse_args()


def main() -> int:
    """Train; the exit code is that of the error, if there is one."""
    options = parse()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        train(options)
    except PipeplanError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    finally:
        dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
