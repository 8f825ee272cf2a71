"""Trains a small language model on text by a schedule that was searched for it, and compares with 1F1B.

    torchrun --nproc-per-node 2 examples/train_text.py

Three trainings from the same weights on the same batches: by 1F1B and by ZB-H1, which are recorded; and by what
``pipeplan.search`` makes of the costs in these recordings. Their losses are the same, their steps take different times. The
text is this repository's documentation, or the files that are given. Needs PyTorch; one CPU thread a rank, no GPU.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn

import pipeplan
from pipeplan.costs import balanced
from pipeplan.foundation.errors import PipeplanError
from pipeplan.runtime import Pipeline, Recording

HERE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Text:
    """Words as numbers: the most frequent ones have their own, the others share 0."""

    words: Tensor
    vocabulary: int

    @classmethod
    def read(cls, files: list[Path], vocabulary: int) -> Text:
        """The words of some files, at most ``vocabulary`` different ones."""
        words = [word for file in files for word in re.findall(r"\w+|\S|\n", file.read_text(encoding="utf-8"))]
        number = {word: rank for rank, (word, _) in enumerate(Counter(words).most_common(vocabulary - 1), start=1)}
        return cls(torch.tensor([number.get(word, 0) for word in words]), vocabulary)

    def batches(self, steps: int, size: int, length: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The same batches on every rank: ``size`` pieces of ``length`` words, and the word after each."""
        generator = torch.Generator().manual_seed(0)
        for _ in range(steps):
            starts = torch.randint(len(self.words) - length, (size, 1), generator=generator)
            piece = self.words[starts + torch.arange(length + 1)]
            yield piece[:, :-1], piece[:, 1:]


class Embedding(nn.Module):
    """Words and their places as vectors."""

    def __init__(self, vocabulary: int, length: int, width: int) -> None:
        super().__init__()
        self.word, self.place = nn.Embedding(vocabulary, width), nn.Embedding(length, width)

    def forward(self, words: Tensor) -> Tensor:
        """Shape (batch, length) to (batch, length, width)."""
        return self.word(words) + self.place.weight


class Block(nn.Module):
    """Causal attention and a perceptron."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Shape (batch, length, width) to the same."""
        parts = self.attention(self.norms[0](x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.perceptron(self.norms[1](x))


def layers(options: argparse.Namespace) -> list[nn.Module]:
    """The whole model, the same on every rank; of a large one, a rank would build its own layers alone."""
    torch.manual_seed(0)
    head = nn.Sequential(nn.LayerNorm(options.width), nn.Linear(options.width, options.vocabulary))
    blocks = [Block(options.width) for _ in range(options.blocks)]
    return [Embedding(options.vocabulary, options.length, options.width), *blocks, head]


def stage(options: argparse.Namespace, rank: int, ranks: int) -> nn.Module:
    """The layers of one rank, cut so that all ranks have nearly the same to multiply."""
    block, head = 12 * options.width**2, options.width * options.vocabulary
    counts = balanced((0.0, *(float(block),) * options.blocks, float(head)), ranks)
    first = sum(counts[:rank])
    return nn.Sequential(*layers(options)[first : first + counts[rank]])


def loss(logits: Tensor, words: Tensor) -> Tensor:
    """The mean over all words of a microbatch."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), words.flatten())


def train(schedule: str | Path, options: argparse.Namespace, text: Text) -> tuple[list[float], Recording]:
    """Train by a schedule: the loss of every step, and all steps but the first measured."""
    modules = [stage(options, dist.get_rank(), dist.get_world_size())]
    pipeline = Pipeline(schedule, modules, loss, microbatches=options.microbatches)
    optimizer = torch.optim.AdamW(pipeline.parameters(), lr=1e-3)
    batches = text.batches(options.steps + 1, options.microbatches * options.size, options.length)

    def step() -> float:
        losses = pipeline.step(*next(batches))
        pipeline.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad()
        return float(pipeline.broadcast(losses).mean())

    curve = [step()]
    with pipeline.record() as recording:
        curve += [step() for _ in range(options.steps)]
    return curve, recording


def search(options: argparse.Namespace) -> tuple[Path, float]:
    """A better schedule for the recorded costs, as a file for all ranks, and the seconds that its step should take."""
    costs, found = options.out / "costs.yaml", options.out / "found.json"
    predicted = [0.0]
    if dist.get_rank() == 0:
        whole = pipeplan.profile(source=options.out / "1f1b.json").settings()
        pipeplan.profile(source=options.out / "zb-h1.json").save(costs)
        best = pipeplan.search(config=costs, backward_times=whole.backward_times, evaluations=options.evaluations)
        best.save(found)
        predicted = [best.makespan / 1e3]
    dist.broadcast_object_list(predicted)
    return found, predicted[0]


def compare(options: argparse.Namespace) -> None:
    """Train three times; the first rank says how they compare."""
    text = Text.read(options.files or sorted((HERE / "docs").glob("*.md")), options.vocabulary)
    curves: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}

    def tell(*words: object) -> None:
        if dist.get_rank() == 0:
            print(*words, flush=True)

    def trained(name: str, schedule: str | Path) -> None:
        curves[name], recording = train(schedule, options, text)
        seconds[name] = recording.median_step_seconds
        spread = f"{min(recording.step_seconds):.4f} to {max(recording.step_seconds):.4f}"
        ends = f"{curves[name][0]:.4f} to {curves[name][-1]:.4f}"
        tell(f"{name:8}  step {seconds[name]:.4f} s ({spread})  loss {ends}")
        recording.save(options.out / f"{name}.json")
        recording.save(options.out / f"{name}.trace.json")

    tell(f"{len(text.words)} words, {options.vocabulary} different; {dist.get_world_size()} ranks")
    trained("1f1b", "1f1b")
    trained("zb-h1", "zb-h1")
    found, predicted = search(options)
    trained("searched", found)
    apart = max(abs(a - b) for name in ("zb-h1", "searched") for a, b in zip(curves["1f1b"], curves[name], strict=True))
    change = seconds["searched"] / seconds["1f1b"] - 1
    tell(f"searched against 1f1b: {change:+.1%} step time; {predicted:.4f} s were predicted")
    tell(f"largest difference of a loss: {apart:.1e}")


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*", help="text to train on (default: the documentation)")
    parser.add_argument("--out", type=Path, default=Path("train_text"), help="folder for costs, schedule and traces")
    parser.add_argument("--steps", type=int, default=10, help="measured steps of each training")
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--size", type=int, default=2, help="pieces of text in a microbatch")
    parser.add_argument("--length", type=int, default=64, help="words of a piece")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--vocabulary", type=int, default=4096)
    parser.add_argument("--evaluations", type=int, default=20_000, help="of the search")
    return parser.parse_args()


def main() -> int:
    """Compare; the exit code is that of the error, if there is one."""
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    try:
        compare(options)
    except PipeplanError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    finally:
        dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
