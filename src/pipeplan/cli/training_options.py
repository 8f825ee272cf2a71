"""The options that ``run`` and ``profile`` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict

from cyclopts import Group, Parameter

from pipeplan.cli.options import parameter_of
from pipeplan.costs import RUN_SETTINGS

TRAINING = Group("Training", sort_key=0)

REFRESHES = 2.0
"""Of the bar, a second: the cores are what is measured."""


CALIBRATION = Group("Calibration", sort_key=1)


def calibration_option(text: str, *names: str) -> Parameter:
    """An option of the calibration group."""
    return Parameter(name=names, help=text, group=CALIBRATION, show_default=False)


def training_option(text: str, *names: str) -> Parameter:
    """An option of the training group."""
    return Parameter(name=names, help=text, group=TRAINING, show_default=False)


class Chosen(TypedDict):
    """Which model, cut how, on what: the keywords that ``run`` and ``profile`` share."""

    model: str
    layout: tuple[int, ...] | None
    device: Literal["auto", "cpu", "cuda"]
    threads: int
    seed: int
    timeout: float
    dtype: Literal["float32", "bfloat16"] | None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Which model, cut how, on what."""

    model: Annotated[
        str, training_option("gpt-tiny, gpt-small, llama-3-8b, or module:function (gpt-tiny).", "--model")
    ] = "gpt-tiny"
    layout: Annotated[tuple[int, ...] | None, parameter_of(RUN_SETTINGS["layout"], TRAINING)] = None
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        training_option("cpu (gloo), cuda (NCCL), or auto: cuda where every rank has a GPU.", "--device"),
    ] = "auto"
    threads: Annotated[int, parameter_of(RUN_SETTINGS["threads"], TRAINING)] = 1
    seed: Annotated[int, parameter_of(RUN_SETTINGS["seed"], TRAINING)] = 0
    timeout: Annotated[float, parameter_of(RUN_SETTINGS["timeout"], TRAINING)] = 120.0
    dtype: Annotated[
        Literal["float32", "bfloat16"] | None, training_option("Of the parameters (the model's own).", "--dtype")
    ] = None

    def chosen(self) -> Chosen:
        """The options as keywords."""
        return {
            "model": self.model,
            "layout": self.layout,
            "device": self.device,
            "threads": self.threads,
            "seed": self.seed,
            "timeout": self.timeout,
            "dtype": self.dtype,
        }
