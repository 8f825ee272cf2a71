"""Options of training runs and profiles."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from pipeplan.costs import MOST_SECONDS, SEED, STEPS, DeviceOptions, MeasuringOptions, Range, option
from pipeplan.passes import Receives

DataType = Literal["float32", "bfloat16"]


class Layered(Protocol):
    """Interface of :class:`pipeplan.runtime.Model` for code that does not import PyTorch."""

    @property
    def layers(self) -> Any:
        """Layers of the model."""


@dataclass(frozen=True, kw_only=True)
class ModelOptions(DeviceOptions):
    """Options for the model to train or measure, its layout and its initialization."""

    # A table, read by columns: formatted, it would have a line for every argument.
    # fmt: off
    model: str | Layered = option(
        "gpt-tiny", kind="model", group="training", longest=4096,
        help="Model to train: gpt-tiny, gpt-small, llama-3-8b, or module:function; in Python also a pipeplan.runtime.Model.",
    )
    layout: tuple[int, ...] | None = option(
        kind="layout", group="training", usual=False, help="Number of layers of each stage.",
        default="balanced by layer weights",
    )
    seed: int = option(
        0, kind="count", group="training", usual=False, help="Random seed of weights and data.", range=SEED
    )
    timeout: float = option(
        120.0, kind="number", group="training", usual=False, unit="seconds", range=Range(0, open=True, most=MOST_SECONDS),
        help="Seconds without progress after which a rank is considered hung.",
    )
    dtype: DataType | None = option(
        kind="choice", group="training", usual=False, choices=get_args(DataType), default="the model's own",
        help="Data type of the parameters.",
    )
    # fmt: on


@dataclass(frozen=True, kw_only=True)
class RunOptions(ModelOptions):
    """Options of a training run."""

    steps: int = option(5, kind="count", group="training", help="Number of timed steps.", range=STEPS)
    # A table, read by columns: formatted, it would have a line for every argument.
    # fmt: off
    warmup: int = option(
        1, kind="count", group="training", usual=False, help="Number of untimed training steps before the timed ones.",
        range=Range(0, most=1_000_000),
    )
    verify: bool = option(
        False, kind="flag", group="training",
        help="Compare every loss and gradient with a single-process run, for which each rank holds the whole model.",
    )
    receives: Receives = option(
        "early", kind="choice", group="training", usual=False, choices=get_args(Receives),
        help="Time to post receives: as early as possible, or right before the message is needed (late).",
    )
    learning_rate: float = option(
        1e-3, kind="number", group="training", usual=False, help="Learning rate of AdamW.", range=Range(0)
    )
    kineto: str | os.PathLike[str] | None = option(
        kind="file", group="training", usual=False,
        help="Existing folder for PyTorch's own profile of one more step: rank0.json and so on.",
    )
    # fmt: on


@dataclass(frozen=True, kw_only=True)
class ProfileOptions(ModelOptions, MeasuringOptions):
    """Options of a profile of a model's stages."""

    warmup: int = option(
        3,
        kind="count",
        group="training",
        usual=False,
        help="Number of rounds before the measured ones.",
        range=Range(0, most=1_000_000),
    )
    per_layer: bool = option(
        False,
        kind="flag",
        group="training",
        help="Measure every layer on its own: one profile then serves every schedule and layout.",
    )
