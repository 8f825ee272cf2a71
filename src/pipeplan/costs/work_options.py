"""Options of training runs and profiles, shared by the API and the runtime, and ranges that several records use."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from pipeplan.costs.options import Options, option
from pipeplan.costs.values import COUNT, Range

MOST_SECONDS = 31_536_000
"""Maximum duration: a year, with which no library's clock overflows."""

SEED = Range(0, most=2**53 - 1)
"""Range of seeds: the integers that every JSON reader represents exactly."""

WORKERS = Range(1, most=1_024)
"""Range of the number of processes or threads."""

STEPS = Range(1, most=1_000_000)

Device = Literal["auto", "cpu", "cuda"]
DataType = Literal["float32", "bfloat16"]
Receives = Literal["early", "late"]


class Layered(Protocol):
    """Interface of :class:`pipeplan.runtime.Model` for code that does not import PyTorch."""

    @property
    def layers(self) -> Any:
        """Layers of the model."""


@dataclass(frozen=True, kw_only=True)
class DeviceOptions(Options):
    """Options for the device on which a model is trained or measured."""

    device: Device = option(
        "auto",
        kind="choice",
        group="training",
        choices=get_args(Device),
        help="Device to train on: cpu (gloo), cuda (NCCL), or auto (cuda if every rank has a GPU).",
    )
    threads: int = option(1, kind="count", group="training", help="CPU threads per rank.", range=WORKERS)


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
        kind="layout", group="training", help="Number of layers of each stage.",
        default="balanced by layer weights",
    )
    seed: int = option(
        0, kind="count", group="training", help="Random seed of weights and data.", range=SEED
    )
    timeout: float = option(
        120.0, kind="number", group="training", range=Range(0, open=True, most=MOST_SECONDS),
        help="Seconds without progress after which a rank is considered hung.",
    )
    dtype: DataType | None = option(
        kind="choice", group="training", choices=get_args(DataType), default="the model's own",
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
        1, kind="count", group="training", help="Number of untimed training steps before the timed ones.",
        range=Range(0, most=1_000_000),
    )
    verify: bool = option(
        False, kind="flag", group="training",
        help="Compare every loss and gradient with a single-process run, for which each rank holds the whole model.",
    )
    receives: Receives = option(
        "early", kind="choice", group="training", choices=get_args(Receives),
        help="Time to post receives: as early as possible, or right before the message is needed (late).",
    )
    learning_rate: float = option(
        1e-3, kind="number", group="training", help="Learning rate of AdamW.", range=Range(0)
    )
    kineto: str | os.PathLike[str] | None = option(
        kind="file", group="training",
        help="Existing folder for PyTorch's own profile of one more step: rank0.json and so on.",
    )
    # fmt: on


@dataclass(frozen=True, kw_only=True)
class MeasuringOptions(DeviceOptions):
    """Options for repeated measurements."""

    repeats: int = option(15, kind="count", group="training", help="Number of measured rounds.", range=STEPS)


@dataclass(frozen=True, kw_only=True)
class ProfileOptions(ModelOptions, MeasuringOptions):
    """Options of a profile of a model's stages."""

    warmup: int = option(
        3,
        kind="count",
        group="training",
        help="Number of rounds before the measured ones.",
        range=Range(0, most=1_000_000),
    )
    per_layer: bool = option(
        False,
        kind="flag",
        group="training",
        help="Measure every layer on its own: one profile then serves every schedule and layout.",
    )


@dataclass(frozen=True, kw_only=True)
class CalibrationOptions(MeasuringOptions):
    """Options of a calibration of the planner on one GPU."""

    sequence: int | None = option(
        kind="count",
        group="calibration",
        help="Sequence length in tokens.",
        range=COUNT,
        default="the model's context length, at most 8192",
    )
    microbatch_size: int = option(1, kind="count", group="calibration", help="Sequences per microbatch.", range=COUNT)
