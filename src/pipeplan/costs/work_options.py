"""Options of measurements that several extensions take, and ranges of numbers that several records use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

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
    threads: int = option(1, kind="count", group="training", usual=False, help="CPU threads per rank.", range=WORKERS)


@dataclass(frozen=True, kw_only=True)
class MeasuringOptions(DeviceOptions):
    """Options for repeated measurements."""

    repeats: int = option(
        15, kind="count", group="training", usual=False, help="Number of measured rounds.", range=STEPS
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
