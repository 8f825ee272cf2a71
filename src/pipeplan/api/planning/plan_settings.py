"""The one table of what a plan is asked for: the command line, Python, the web API, its form and the docs derive from it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import get_args

from pipeplan.costs import COUNT, MOST_SECONDS, POSITIVE, WORKERS, Group, Range, Setting, table_of
from pipeplan.planner import Objective

PLAN_GROUPS: Mapping[Group, str] = MappingProxyType(
    {"training": "What to train", "choosing": "What to choose by", "work": "How long, and where"}
)
"""The groups that the settings of a plan are shown in, in their order, with their titles."""

PLAN_SETTINGS: Mapping[str, Setting] = table_of(
    Setting(
        name="model", kind="text", title="Model", group="training", longest=4096,
        help="A preset (`pipeplan plan --models` lists them), or a model hub's config.json as it is.",
        hint="A preset, or drop a config.json.",
    ),
    Setting(
        name="cluster", kind="text", title="Cluster", group="training", longest=4096,
        help="GPU:PER_NODExNODES, such as h100-sxm:8x16 (`pipeplan plan --gpus` lists GPUs), or a file.",
        hint="GPU:PER_NODExNODES, such as h100-sxm:8x16.",
    ),
    Setting(
        name="global_batch", kind="count", title="Global batch", group="training", unit="sequences", range=COUNT,
        help="Sequences in a step, of all replicas together.", hint="Sequences in a step.",
    ),
    Setting(
        name="sequence", kind="count", title="Sequence", group="training", unit="tokens", range=COUNT,
        help="Tokens in a sequence.", hint="Tokens.",
    ),
    Setting(
        name="memory_limit", kind="size", title="Memory limit", group="choosing",
        help="What a GPU may hold at most: bytes, or 72GiB.", default="its memory less a reserve",
    ),
    Setting(
        name="objective", kind="choice", title="Objective", group="choosing", choices=get_args(Objective),
        help="What should be best: the step's time, tokens a second, the cost of a token, or the number of GPUs "
        "that meets the deadline.",
        default="step-time",
    ),
    Setting(
        name="deadline", kind="number", title="Deadline", group="choosing", unit="seconds a step", range=POSITIVE,
        help="The longest step that the objective gpus allows; seconds.",
        hint="Seconds of a step, for the objective gpus.",
    ),
    Setting(
        name="fix", kind="pairs", title="Fixed", group="choosing",
        help="What is decided already, as NAME=VALUE: tp=8, or tp=4,8 for either; repeatable.",
        hint="NAME=VALUE, such as tp=8 pp=4,8 trainer=megatron.",
    ),
    Setting(
        name="seconds", kind="number", title="Seconds", group="work", unit="seconds",
        range=Range(0, open=True, most=MOST_SECONDS),
        help="The budget: what is best by then is the answer.", default="30",
        hint="The budget: what is best by then is the answer.",
    ),
    Setting(
        name="workers", kind="count", title="Workers", group="work", range=WORKERS, in_form=False,
        help="Processes on this machine.", default="as many as there are cores",
    ),
    Setting(
        name="dask", kind="text", title="Dask scheduler", group="work", in_form=False, longest=400,
        help="Address of a Dask scheduler, whose workers estimate in place of processes here.",
    ),
    Setting(
        name="store", kind="file", title="Store", group="work", in_form=False,
        help="File that keeps estimates as they come: the same question asked again goes on from there.",
    ),
    Setting(
        name="calibration", kind="file", title="Calibration", group="work", in_form=False,
        help="What `pipeplan profile --calibrate` measured on one's own GPU.",
    ),
)  # fmt: skip
"""Each setting by its name."""

NEEDED = ("model", "cluster", "global_batch", "sequence")
"""What nobody can choose for the user."""
