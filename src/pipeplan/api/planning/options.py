"""The options of plans and estimates."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, get_args

from pipeplan.costs import COUNT, MOST_SECONDS, POSITIVE, WORKERS, Group, Options, Range, option
from pipeplan.hardware import Cluster
from pipeplan.planner import Objective as PlanObjective
from pipeplan.workload import ModelShape

FilePath = str | os.PathLike[str]

ModelLike = FilePath | Mapping[str, Any] | ModelShape
"""A preset's name, a model hub's config.json as a file or as its content, or a shape."""

ClusterLike = FilePath | Cluster
"""``GPU:PER_NODExNODES``, a file, or a cluster."""

FixLike = Mapping[str, Any] | Sequence[str]
"""What is decided: ``{"tp": 8, "pp": [4, 8]}``, or ``["tp=8", "pp=4,8"]``."""

PLAN_GROUPS: Mapping[Group, str] = MappingProxyType(
    {"training": "What to train", "choosing": "What to choose by", "work": "How long, and where"}
)
"""The groups that the settings of a plan are shown in, in their order, with their titles."""


@dataclass(frozen=True, kw_only=True)
class EstimateOptions(Options):
    """Options of estimates."""

    workers: int | None = option(
        kind="count", title="Workers", group="work", range=WORKERS, in_form=False,
        help="Processes on this machine.", default="as many as there are cores",
    )  # fmt: skip
    dask: str | None = option(
        kind="text", title="Dask scheduler", group="work", in_form=False, longest=400,
        help="Address of a Dask scheduler, whose workers estimate in place of processes here.",
    )  # fmt: skip
    store: FilePath | None = option(
        kind="file", title="Store", group="work", in_form=False,
        help="Checkpoint file of estimates; rerun the same command to resume.",
    )  # fmt: skip
    calibration: FilePath | None = option(
        kind="file", title="Calibration", group="work", in_form=False,
        help="What `pipeplan calibrate` measured on one's own GPU.",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PlanOptions(EstimateOptions):
    """Options of a plan."""

    model: ModelLike = option(
        ..., kind="object", title="Model", group="training", longest=4096,
        help="A preset (`pipeplan catalogue models` lists them), or a model hub's config.json as it is.",
        hint="A preset, or drop a config.json.",
    )  # fmt: skip
    cluster: ClusterLike = option(
        ..., kind="object", title="Cluster", group="training", longest=4096,
        help="GPU:PER_NODExNODES, such as h100-sxm:8x16 (`pipeplan catalogue gpus` lists GPUs), or a file.",
        hint="GPU:PER_NODExNODES, such as h100-sxm:8x16.",
    )  # fmt: skip
    global_batch: int = option(
        ..., kind="count", title="Global batch", group="training", unit="sequences", range=COUNT,
        help="Sequences in a step, of all replicas together.", hint="Sequences in a step.",
    )  # fmt: skip
    sequence: int = option(
        ..., kind="count", title="Sequence", group="training", unit="tokens", range=COUNT,
        help="Tokens in a sequence.", hint="Tokens.",
    )  # fmt: skip
    memory_limit: float | str | None = option(
        kind="size", title="Memory limit", group="choosing",
        help="What a GPU may hold at most: bytes, or 72GiB.", default="its memory less a reserve",
    )  # fmt: skip
    objective: PlanObjective = option(
        "step-time", kind="choice", title="Objective", group="choosing", choices=get_args(PlanObjective),
        help="What should be best: the step's time, tokens a second, the cost of a token, or the number of GPUs "
        "that meets the deadline.",
    )  # fmt: skip
    deadline: float | None = option(
        kind="number", title="Deadline", group="choosing", unit="seconds a step", range=POSITIVE,
        help="The longest step that the objective gpus allows; seconds.",
        hint="Seconds of a step, for the objective gpus.",
    )  # fmt: skip
    fix: FixLike | None = option(
        kind="pairs", title="Fixed", group="choosing",
        help="What is decided already, as NAME=VALUE: tp=8, or tp=4,8 for either; repeatable.",
        hint="NAME=VALUE, such as tp=8 pp=4,8 trainer=megatron.",
    )  # fmt: skip
    seconds: float | None = option(
        kind="number", title="Seconds", group="work", unit="seconds",
        range=Range(0, open=True, most=MOST_SECONDS),
        help="The budget: what is best by then is the answer.", default="30",
        hint="The budget: what is best by then is the answer.",
    )  # fmt: skip
