"""torchtitan: settings with which it trains a schedule's CSV, as command-line flags and as Python.

torchtitan uses the *name* of a schedule only for the number of stages per rank and their placement
(``_pipeline_module_split`` in its ``distributed/pipeline_parallel.py``). The order of ops comes from the CSV, which is
compute-only: PyTorch adds the communication. The name must therefore have the schedule's placement, and stages and
microbatches must match the CSV.

The batch is counted in sequences (0.3) or in tokens (the main branch after it). The default chunked loss passes the gradient
of the norm's output to the graph with a custom function. PyTorch's split backward starts there and finds no gradient for the
norm's weight, so only plain cross entropy trains all weights if the last stage splits its backwards.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from pipeplan.formats import Format, TrainerSettings, Training, torch_csv_compute, torch_csv_warnings
from pipeplan.foundation.errors import ShapeError
from pipeplan.foundation.files import file_name
from pipeplan.model import HOST_KINDS, Kind, Schedule, one_line
from pipeplan.passes import without_recompute
from pipeplan.trainers.torchtitan_layout import module_names, read_layout, require_layers_inside, write_layout
from pipeplan.trainers.trainer import bash_array, built_in

Fields = Mapping[str, Any]
"""Values by the names of a config's fields."""

SCHEDULE_NAMES = {"linear": "1F1B", "loop": "Interleaved1F1B", "v": "ZBVZeroBubble"}
"""PyTorch schedule with each placement that torchtitan can build."""

NO_OTHERS: Mapping[str, int] = MappingProxyType({})
"""No other parallelism."""

_USUAL_CHUNKS = {"linear": 1, "loop": 2, "v": 2}
"""Stages per rank that torchtitan builds for each placement without a list of modules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """Values of fields of torchtitan's ``ParallelismConfig`` and ``TrainingConfig``."""

    parallelism: Fields
    training: Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Release of torchtitan: its name in sentences, and its batch fields.

    ``batch`` is called with microbatches per pipeline step, accumulated pipeline steps, and the training.
    """

    words: str
    batch: Callable[[int, int, Training], Tables]


def _in_sequences(microbatches: int, accumulated: int, training: Training) -> Tables:
    local = microbatches * training.microbatch_size
    batch: dict[str, Any] = {"local_batch_size": local}
    if training.data_parallel > 1 or accumulated > 1:
        batch["global_batch_size"] = local * accumulated * training.data_parallel
    if training.sequence_length is not None:
        batch["seq_len"] = training.sequence_length
    return Tables(parallelism={"pipeline_parallel_microbatch_size": training.microbatch_size}, training=batch)


def _in_tokens(microbatches: int, accumulated: int, training: Training) -> Tables:
    if training.sequence_length is None:
        raise ShapeError(
            "torchtitan's main branch counts its batch in tokens: set sequence_length to the tokens per sequence",
            field="sequence_length",
        )
    tokens = training.microbatch_size * training.sequence_length
    batch = {
        "num_tokens_per_microbatch_per_dp_rank": tokens,
        "num_tokens_per_train_step": tokens * microbatches * accumulated * training.data_parallel,
        "max_context_length": training.sequence_length,
    }
    return Tables(parallelism={"num_pp_microbatches": microbatches}, training=batch)


RELEASES = {
    "0.3": Release(words="torchtitan 0.3", batch=_in_sequences),
    "main": Release(words="torchtitan's main branch as of 2026-08-21 (b5bcd76c)", batch=_in_tokens),
}
"""Supported releases by their name in ``trainer_version``; a bug fix such as 0.3.0 belongs to its minor release."""

GPUS_PER_NODE = 8
"""Maximum number of processes that torchrun starts per node where the cluster is unknown."""


def torchtitan_flags(schedule: Schedule, training: Training) -> TrainerSettings:
    """Return a bash array of torchtitan's command-line flags for a schedule, and its CSV.

    Parameters
    ----------
    schedule
        Schedule with stages in a line, in a loop or on a V. Communication is removed: PyTorch adds its own.
    training
        Layers of each stage, batch and release; without layers, torchtitan splits the model itself.

    Raises
    ------
    ShapeError
        If torchtitan cannot build or refuses the schedule: another placement, slices, a single rank, an empty inner stage,
        stages that need explicit layers, multi-token prediction, or recomputation on some stages.
    InputError
        If the release is unsupported.
    """
    flags = [*schedule_flags(schedule, training), *(["activation-checkpoint:full"] if schedule.has(Kind.R) else [])]
    lines = [
        *_comments(schedule, training),
        _launch(schedule.ranks * training.data_parallel),
        *bash_array("TORCHTITAN_ARGS", flags),
    ]
    return TrainerSettings(
        text="\n".join(lines) + "\n", files=schedule_csv(schedule, training), warnings=warnings_of(schedule)
    )


def schedule_flags(schedule: Schedule, training: Training, degrees: Mapping[str, int] = NO_OTHERS) -> list[str]:
    """Return the flags of a schedule and of other parallel degrees, which are by field name of ``ParallelismConfig``.

    Parameters and errors are those of :func:`torchtitan_flags`.
    """
    tables = _tables(schedule, training)
    return [
        *(_flag(f"parallelism.{name}", value) for name, value in {**tables.parallelism, **degrees}.items()),
        *(_flag(f"training.{name}", value) for name, value in tables.training.items()),
    ]


def schedule_csv(schedule: Schedule, training: Training) -> dict[str, str]:
    """Return the file with a schedule's order of compute ops, by its name."""
    return {csv_name(schedule, training): torch_csv_compute(without_recompute(schedule))}


def _launch(processes: int) -> str:
    """Return the comment with torchrun's command line for a number of processes, the same number on every node."""
    here = next(count for count in range(min(processes, GPUS_PER_NODE), 0, -1) if processes % count == 0)
    nodes = f" --nnodes {processes // here}" if processes > here else ""
    return (
        f"# torchrun --nproc-per-node {here}{nodes} -m torchtitan.train "
        '--module NAME --config NAME "${TORCHTITAN_ARGS[@]}"'
    )


def torchtitan_python(schedule: Schedule, training: Training) -> TrainerSettings:
    """Return Python code that sets a schedule in a ``Trainer.Config`` of torchtitan, and the schedule's CSV.

    Its tables are fields of ``ParallelismConfig`` and ``TrainingConfig``. Parameters and errors are those of
    :func:`torchtitan_flags`.
    """
    tables = _tables(schedule, training)
    body = "".join(
        (
            _FUNCTION,
            _FULL_RECOMPUTATION if schedule.has(Kind.R) else "",
            _PLAIN_LOSS if _splits_last_stage(schedule) else "",
            "    return config",
        )
    )
    lines = [
        *_comments(schedule, training),
        *_python_table("PARALLELISM", tables.parallelism),
        *_python_table("TRAINING", tables.training),
        *body.split("\n"),
    ]
    return TrainerSettings(
        text="\n".join(lines) + "\n", files=schedule_csv(schedule, training), warnings=warnings_of(schedule)
    )


_FUNCTION = '''

def scheduled(config):
    """A Trainer.Config, such as a function of a config registry returns, with this schedule."""
    for name, value in PARALLELISM.items():
        setattr(config.parallelism, name, value)
    for name, value in TRAINING.items():
        setattr(config.training, name, value)
'''

_FULL_RECOMPUTATION = """    from torchtitan.distributed.activation_checkpoint import FullAC

    config.activation_checkpoint = FullAC.Config()
"""

_PLAIN_LOSS = """    if hasattr(config.loss, "num_chunks"):
        config.loss = config.loss.loss_fn
"""


def _tables(schedule: Schedule, training: Training) -> Tables:
    release = RELEASES[TRAINER.release(training.trainer_version)]
    require_buildable(schedule, training)
    batch = release.batch(schedule.microbatches, 1, training)
    parallelism = {
        "pipeline_parallel_degree": schedule.ranks,
        "pipeline_parallel_schedule": SCHEDULE_NAMES[schedule.placement.name],
        "pipeline_parallel_schedule_csv": csv_name(schedule, training),
        **batch.parallelism,
    }
    if training.data_parallel > 1:
        parallelism["data_parallel_shard_degree"] = training.data_parallel
    layers = training.layers_of(schedule.stages)
    if layers is not None:
        parallelism["module_fqns_per_model_part"] = module_names(layers)
    return Tables(parallelism=parallelism, training={**batch.training, "disable_cuda_graphs": True})


def require_buildable(schedule: Schedule, training: Training, trainer: str = "torchtitan") -> None:
    """Raise ShapeError if a trainer that builds PyTorch's stages and loads their CSV cannot build a schedule."""
    placement, layers = schedule.placement, training.layers_of(schedule.stages)
    if placement.name not in SCHEDULE_NAMES or schedule.slices > 1:
        sliced = f" with {schedule.slices} slices per sequence" if schedule.slices > 1 else ""
        raise ShapeError(
            f"{trainer} supports stages in a line, in a loop or on a V, without slices; this schedule's placement is "
            f"{placement.name}{sliced}"
        )
    if schedule.ranks < 2:
        raise ShapeError(f"{trainer} needs at least two pipeline ranks")
    if training.mtp_layers:
        raise ShapeError(f"{trainer}'s pipelines do not support multi-token prediction", field="mtp_layers")
    if layers is None and placement.chunks != _USUAL_CHUNKS[placement.name]:
        raise ShapeError(
            f"{trainer} builds {_USUAL_CHUNKS[placement.name]} stages per rank by default, but this schedule has "
            f"{placement.chunks}: set layers_per_stage to the layers of each of its {schedule.stages} stages",
            field="layers_per_stage",
        )
    if not schedule.kinds.isdisjoint(HOST_KINDS):
        raise ShapeError(
            f"{trainer} cannot offload activations of single microbatches: drop offload",
            field="offload",
        )
    recomputed = np.unique(schedule.columns.stage[schedule.where(Kind.R)]).tolist()
    if recomputed and len(recomputed) < schedule.stages:
        raise ShapeError(
            f"{trainer} recomputes on every stage or on none; this schedule on stages {', '.join(map(str, recomputed))}",
            field="recompute",
        )
    require_layers_inside(layers or (), trainer)


def csv_name(schedule: Schedule, training: Training) -> str:
    """Return the path of a schedule's CSV on the training machines."""
    if training.csv is not None:
        return training.csv
    return f"{file_name(schedule.name or 'schedule')}.csv"


def _splits_last_stage(schedule: Schedule) -> bool:
    """Return True if a backward of the last stage, which has norm, head and loss, is split."""
    return bool((schedule.columns.stage[schedule.where(Kind.I)] == schedule.stages - 1).any())


def _comments(schedule: Schedule, training: Training) -> list[str]:
    placement, layers = schedule.placement, training.layers
    release = RELEASES[TRAINER.release(training.trainer_version)]
    lines = [
        f"# {release.words}: {one_line(schedule.name or 'schedule')} on {schedule.ranks} ranks, "
        f"{schedule.stages} stages ({placement.name}, {placement.chunks} per rank), {schedule.microbatches} microbatches of "
        f"{training.microbatch_size}.",
        "# The schedule's name only sets the placement of stages; the CSV sets the order of ops.",
    ]
    if layers is None:
        lines.append("# torchtitan splits the model itself, with one layer less on the first and on the last stage.")
    else:
        lines.append(f"# For a model of {sum(layers)} layers.")
    if schedule.has(Kind.R):
        lines.append("# Every stage recomputes in full (FullAC); on the command line this must come last.")
    if schedule.joined.any():
        lines.append(
            "# The ops of overlapped pairs run one after the other: only 0.2.1 and 0.2.2 overlap those of DualPipeV."
        )
    lines += [f"# Warning: {sentence}." for sentence in warnings_of(schedule)]
    return lines


def warnings_of(schedule: Schedule) -> tuple[str, ...]:
    """Return warnings on how PyTorch and torchtitan run a schedule."""
    if not _splits_last_stage(schedule):
        return torch_csv_warnings(schedule)
    return (
        *torch_csv_warnings(schedule),
        "with torchtitan's default loss, in chunks (ChunkedLossWrapper), norm.weight gets a wrong gradient or none if a "
        "backward of the last stage is split, as here; set config.loss = config.loss.loss_fn, plain cross entropy, in the "
        "config function, as torchtitan's llama3_debugmodel_ce_loss does",
    )


def _flag(name: str, value: Any) -> str:
    """Return a flag in tyro's syntax: True has no value, and the modules of each stage are one word."""
    if value is True:
        return f"--{name}"
    words = [",".join(part) for part in value] if isinstance(value, list) else [str(value)]
    return " ".join([f"--{name}", *map(shlex.quote, words)])


def _python_table(name: str, table: Fields) -> list[str]:
    return [f"{name} = {{", *(f"    {key!r}: {value!r}," for key, value in table.items()), "}"]


TRAINER = built_in(
    "torchtitan",
    schedules=frozenset({"gpipe", "looped-bfs", "1f1b", "interleaved-1f1b", "interleaved-zb", "zbv", "dualpipev"}),
    formats=(
        Format(
            name="torchtitan",
            title="torchtitan flags",
            help="Command-line flags with which torchtitan trains the schedule's CSV, which is also written.",
            ending=".torchtitan.sh",
            media="text/x-shellscript; charset=utf-8",
            write_settings=torchtitan_flags,
        ),
        Format(
            name="torchtitan-python",
            title="torchtitan config",
            help="The same settings as Python code for torchtitan's config registry.",
            ending=".torchtitan.py",
            media="text/x-python; charset=utf-8",
            write_settings=torchtitan_python,
        ),
    ),
    write_layout=write_layout,
    parse_layout=read_layout,
    layout_mark=r"\blayers\.\d|\btok_embeddings\b|module_fqns_per_model_part",
)
