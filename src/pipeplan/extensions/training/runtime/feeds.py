"""Inputs of a rank in a step or an evaluation, and the shapes for which its buffers are allocated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, get_args

import torch

from pipeplan.extensions.training.runtime.microbatches import (
    Shapes,
    Sizes,
    Uneven,
    in_words,
    samples,
    shapes,
    sizes,
    sizes_of,
    split,
)
from pipeplan.extensions.training.runtime.torch_internals import Feed
from pipeplan.foundation.errors import InputError

Pass = Literal["step", "eval"]
"""Method of a pipeline that all ranks call together."""

_PASSES: tuple[Pass, ...] = get_args(Pass)


@dataclass(frozen=True, slots=True)
class Batch:
    """A rank's part of a batch, as the caller passes it."""

    inputs: Any
    targets: Any
    keywords: dict[str, Any]


@dataclass(slots=True)
class Feeds:
    """Feeds of one rank.

    Attributes
    ----------
    rank, first, last
        Number of the rank, and whether it holds the first and the last stage.
    microbatches
        Number of microbatches of a batch.
    device
        Device of the stages.
    varying_lengths
        Whether the microbatches of a batch may differ in length.
    shapes
        Shapes of the last batch of each kind of pass.
    """

    rank: int
    first: bool
    last: bool
    microbatches: int
    device: torch.device
    varying_lengths: bool = False
    shapes: dict[Pass, Shapes] = field(default_factory=dict)

    @property
    def numbers(self) -> int:
        """Return the number of integers that the ranks exchange before a pass."""
        return 5 + self.microbatches * self.varying_lengths

    def prepare(self, kind: Pass, batch: Batch) -> tuple[tuple[Feed, Shapes], tuple[int, ...]]:
        """Return the feed of a pass with its shapes, and the numbers for the other ranks.

        Raises
        ------
        InputError
            In the cases of :meth:`pipeplan.runtime.Pipeline.step`.
        """
        feed = self._feed(kind, batch)
        lengths: list[int] = []
        if self.varying_lengths:
            now, changed, lengths = self._lengths(kind, feed)
        else:
            now = shapes((feed.arguments[0], feed.keywords[0]))
            before = self.shapes.get(kind, now)
            changed = now != before
            if kind == "step":
                _require_same_shapes(now, before)
        counts = samples(batch.inputs) if self.first else 0, samples(batch.targets) if self.last else 0
        number = _PASSES.index(kind)
        return (feed, now), (number, -number, changed, *counts, *lengths)

    def _lengths(self, kind: Pass, feed: Feed) -> tuple[Sizes, bool, list[int]]:
        """Return the sizes of a batch, whether the stages must look ahead again, and this rank's lengths of microbatches.

        The length is the first size that has differed within a batch. Other sizes are those of the batch before.
        """
        now, rows = sizes_of(list(zip(feed.arguments, feed.keywords, strict=True)))
        before = self.shapes.get(kind, now)
        changed = len(now) != len(before) or any(
            size != last and last is not None for size, last in zip(now, before, strict=True)
        )
        kept = now if changed else before
        if not self.first or None not in kept:
            return kept, changed, [0] * self.microbatches
        column = kept.index(None)
        return kept, changed, [row[column] for row in rows]

    def agreed(self, kind: Pass, prepared: tuple[Feed, Shapes], largest: Sequence[int]) -> tuple[Feed, bool]:
        """Return the feed after the exchange, and whether any rank has other shapes than before.

        Raises
        ------
        InputError
            If the ranks are before different passes, or an uneven batch has other numbers of inputs than of targets.
        """
        highest, lowest, changed, size, wanted, *lengths = largest
        if highest != -lowest:
            raise InputError("some ranks call step() and others eval(): all ranks must call the same")
        feed, now = prepared
        if lengths:
            feed = replace(feed, lengths=lengths)
        if size % self.microbatches or wanted % self.microbatches:
            if wanted not in (0, size):
                raise InputError(
                    f"the inputs hold {size} samples and the targets {wanted}: pass as many", field="targets"
                )
            feed = replace(feed, sizes=sizes(size, self.microbatches))
        self.shapes[kind] = now
        return feed, bool(changed)

    def _feed(self, kind: Pass, batch: Batch) -> Feed:
        training = kind == "step"
        if training and not torch.is_grad_enabled():
            raise InputError("step() trains and needs gradients: call it outside torch.no_grad(), or call eval()")
        cut = partial(split, microbatches=self.microbatches, device=self.device, varying=self.varying_lengths)
        padded: Uneven = "refused" if training else "padded"
        arguments: list[tuple[Any, ...]] = [()] * self.microbatches
        if self.first:
            if batch.inputs is None:
                raise InputError(f"rank {self.rank} holds the first stage and needs the inputs", field="inputs")
            parts = cut(batch.inputs, what="the inputs", uneven=padded)
            arguments = [part if isinstance(part, tuple) else (part,) for part in parts]
        named = cut(batch.keywords, what="the keywords", uneven=padded) if batch.keywords else [{} for _ in arguments]
        if not self.last or batch.targets is None:
            if self.last and training:
                raise InputError(f"rank {self.rank} holds the last stage and needs the targets", field="targets")
            return Feed(arguments, named, None)
        targets = cut(batch.targets, what="the targets", uneven="refused" if training else "kept")
        return Feed(arguments, named, targets)


def _require_same_shapes(now: Shapes, before: Shapes) -> None:
    """Require that a batch has the keywords and the shapes of the one before, for which the buffers are allocated."""
    if _names(now) != _names(before):
        raise InputError(
            f"this batch comes with the keywords {_names(now) or 'none'} and the ones before it with "
            f"{_names(before) or 'none'}: pass the same with every batch, or call forget_shapes() on all ranks first",
            field="keywords",
        )
    (arguments, named), (arguments_before, named_before) = now, before
    changes = [("this batch", arguments, arguments_before)]
    changes += [
        (f"the keyword {name} of this batch", shape, shape_before)
        for (name, shape), (_, shape_before) in zip(named, named_before, strict=True)
    ]
    for what, shape, shape_before in changes:
        if shape != shape_before:
            raise InputError(
                f"{what} has other shapes or types than before ({in_words(shape) or 'no tensor'} after "
                f"{in_words(shape_before) or 'no tensor'}): pad or drop it, or call forget_shapes() on all ranks first",
                field="inputs",
            )


def _names(shapes_of_feed: Shapes) -> str:
    """Return the names of the keywords in the shapes of a microbatch's arguments and keywords."""
    return ", ".join(name for name, _ in shapes_of_feed[1])
