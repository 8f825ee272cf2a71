"""The options of plans and estimates."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pipeplan.costs import COUNT, MOST_SECONDS, POSITIVE, WORKERS, Options, Range, option
from pipeplan.extensions.planning import DEFAULT_TOKENS, UNUSUAL
from pipeplan.extensions.planning import Objective as PlanObjective
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.names import ModelName
from pipeplan.extensions.planning.workload import ModelShape

FilePath = str | os.PathLike[str]

ModelLike = ModelName | FilePath | Mapping[str, Any] | ModelShape
"""A preset's name, a model hub's config.json as a file or as its content, or a shape."""

ClusterLike = FilePath | Cluster
"""``GPU:PER_NODExNODES``, a file, or a cluster."""

FixLike = Mapping[str, Any] | Sequence[str]
"""Fixed settings: ``{"tp": 8, "pp": [4, 8]}``, or ``["tp=8", "pp=4,8"]``."""

AllowLike = str | Sequence[str]
"""Names of unusual choices, as a list or joined by commas: ``"offload,schedules"``."""


@dataclass(frozen=True, kw_only=True)
class PredictionOptions(Options):
    """Options of plans and of estimates."""

    # A table, read by columns: formatted, it would have a line for every argument.
    # fmt: off
    workers: int | None = option(
        kind="count", group="work", usual=False, range=WORKERS, in_form=False,
        help="Number of worker processes.", default="the number of cores",
    )
    store: FilePath | None = option(
        kind="file", group="work", usual=False, in_form=False,
        help="Checkpoint file; rerun the same command to resume.",
    )
    approximate: bool = option(
        False, kind="flag", group="work", usual=False, in_form=False,
        help="Read a config.json whose layers are not modelled as the nearest architecture.",
    )
    calibration: FilePath | None = option(
        kind="file", group="work", usual=False, in_form=False,
        help="Calibration file of your own GPU, written by `pipeplan calibrate`.",
    )
    # fmt: on


@dataclass(frozen=True, kw_only=True)
class EstimateOptions(PredictionOptions):
    """Options of estimates."""

    # fmt: off
    measured: FilePath | float | None = option(
        kind="object", group="work", longest=4096, in_form=False,
        help="Measured step of one configuration, to compare with its prediction: a duration such as 14.25s, or the log of "
        "the run (Megatron-LM, Megatron Bridge, NeMo, torchtitan).",
    )
    # fmt: on


@dataclass(frozen=True, kw_only=True)
class PlanOptions(PredictionOptions):
    """Options of a plan."""

    # A table, read by columns: formatted, it would have a line for every argument.
    # fmt: off
    runs: FilePath | None = option(
        kind="file", group="work", usual=False, in_form=False,
        help="Ledger of tried runs with their measured steps: corrects the predictions and proposes the next run.",
    )
    model: ModelLike = option(
        ..., kind="object", group="training", longest=4096,
        help="Model: a preset (see `pipeplan list models`) or an unmodified config.json from a model hub.",
        hint="A preset, or drop a config.json here.",
    )
    cluster: ClusterLike = option(
        ..., kind="object", group="training", longest=4096,
        help="Cluster: GPU:PER_NODExNODES, such as h100-sxm:8x16 (see `pipeplan list gpus`), or a file.",
        hint="GPU:PER_NODExNODES, such as h100-sxm:8x16.",
    )
    global_batch: int = option(
        ..., kind="count", group="training", unit="sequences", range=COUNT,
        help="Sequences per step, over all replicas.", hint="Sequences per step.",
    )
    sequence: int = option(
        ..., kind="count", group="training", unit="tokens", range=COUNT,
        help="Sequence length in tokens.", hint="Length in tokens.",
    )
    memory_limit: float | str | None = option(
        kind="size", group="choosing",
        help="Memory limit per GPU: bytes, or a size such as 72GiB.", default="the GPU's memory minus a reserve",
    )
    objective: PlanObjective = option(
        "step-time", kind="choice", group="choosing", choices=get_args(PlanObjective),
        help="Objective: shortest step, lowest cost per token, or fewest GPUs that meet the deadline.",
    )
    deadline: float | str | None = option(
        kind="duration", group="choosing",
        help="Longest step in seconds, or with a unit, longest time for all tokens: 12h, 30d.",
        hint="Seconds per step, or a time for all tokens, such as 30d.",
    )
    tokens: float = option(
        DEFAULT_TOKENS, kind="number", group="choosing", usual=False, unit="tokens", range=POSITIVE,
        help="Tokens of the whole training, such as 15e12, for the totals in days, GPU hours and dollars.",
        hint="Tokens of the whole training, for the totals.",
    )
    price: float | None = option(
        kind="number", group="choosing", usual=False, unit="dollars per GPU hour", range=POSITIVE,
        help="Price of a GPU hour in dollars.", default="the cluster file's, if it has one",
        hint="Dollars per GPU hour.",
    )
    fix: FixLike | None = option(
        kind="pairs", title="Fixed", group="choosing",
        help="Fix a setting, NAME=VALUE: tp=8, or tp=4,8 to allow either; repeatable.",
        hint="NAME=VALUE, such as tp=8 pp=4,8 trainer=megatron.",
    )
    allow: AllowLike = option(
        (), kind="names", group="choosing", usual=False, choices=(*UNUSUAL, "all"),
        help="Unusual choices to try: offload (of activations), zero3-pipeline (ZeRO-3 next to a pipeline), small-chunks "
        "(more than 4 per rank, or fewer than 2 layers each), any-schedule (also those that no trainer runs), any-precision "
        "(also other than the model's), or all. Without it, they are made only if nothing else fits.",
        hint="Choices that teams rarely make: offload, zero3-pipeline, small-chunks, any-schedule, any-precision, or all.",
    )
    seconds: float | None = option(
        kind="number", group="work", unit="seconds",
        range=Range(0, open=True, most=MOST_SECONDS),
        help="Budget: as much work as two idle cores do in these seconds; a loaded machine takes longer.",
        default="30", hint="Amount of work, as the seconds that it takes on two idle cores.",
    )
    # fmt: on
