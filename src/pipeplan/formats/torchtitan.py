"""The settings with which torchtitan trains by a schedule's CSV: command-line flags, and the same as Python.

torchtitan takes from the *name* of a schedule only how many stages a rank has and where they are (``_pipeline_module_split``
in its ``distributed/pipeline_parallel.py``), and the order of ops from the CSV, which is compute only: PyTorch adds the
communication. So the name must be one that has the schedule's placement, and stages and microbatches must be the CSV's.

Its batch is counted in sequences (0.3) or in tokens (the main branch after it). Its default loss, in chunks, hands the
gradient of the norm's output to the graph by a function of its own, and PyTorch's split backward, which starts there, finds
no gradient for the norm's weight: where the last stage splits its backwards, only plain cross entropy trains all weights.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from pipeplan.errors import InputError, ShapeError
from pipeplan.files import file_name
from pipeplan.formats.format import Format
from pipeplan.formats.pytorch_csv import torch_csv_compute
from pipeplan.formats.training import TrainerSettings, Training
from pipeplan.model import HOST_KINDS, Kind, Schedule, one_line, order_of_losses
from pipeplan.passes import without_recompute

Fields = Mapping[str, Any]
"""Values by the names of a config's fields."""

_NAMES = {"linear": "1F1B", "loop": "Interleaved1F1B", "v": "ZBVZeroBubble"}
"""A schedule of PyTorch with each placement that torchtitan can build."""

_OF_PROCESSES = ("tensor_parallel_degree", "context_parallel_degree")
"""Degrees that multiply the processes; experts stand on those that there are."""

NO_OTHERS: Mapping[str, int] = MappingProxyType({})
"""No other parallelism."""

_USUAL_CHUNKS = {"linear": 1, "loop": 2, "v": 2}
"""How many stages a rank torchtitan builds for them where nobody says which module is in which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What is set in torchtitan's ``ParallelismConfig`` and ``TrainingConfig``."""

    parallelism: Fields
    training: Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A state of torchtitan: how it is called in words, and how it says the batch.

    A batch is said for a number of microbatches of a pipeline, and of steps of it whose gradients are accumulated.
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
            "torchtitan's main branch counts its batch in tokens: say how many a sequence has with sequence_length",
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
"""By what ``trainer_version`` calls them; a release's bug fixes, such as 0.3.0, are of that release."""

LATEST = "0.3"
"""What pip installs."""


GPUS_PER_NODE = 8
"""Default maximum number of processes that torchrun starts on a node."""


def torchtitan_flags(
    schedule: Schedule,
    training: Training,
    degrees: Mapping[str, int] = NO_OTHERS,
    *,
    per_node: int = GPUS_PER_NODE,
) -> TrainerSettings:
    """A bash array of torchtitan's command-line flags for a schedule, and its CSV.

    Parameters
    ----------
    schedule
        In a line, in a loop or on a V. Communication is left out: PyTorch adds its own.
    training
        Layers of each stage, batch and release; without layers, torchtitan splits the model by itself.
    degrees
        Of other parallelism, by the names of ``ParallelismConfig``'s fields.
    per_node
        GPUs of a node.

    Raises
    ------
    ShapeError
        For what torchtitan cannot build or refuses: another placement, slices, a single rank, a stage without layers between
        the first and the last, stages that only layers can tell it, multi-token prediction, recomputation on some stages.
    InputError
        For an unknown release.
    """
    release = _release(training)
    tables = _tables(schedule, training, release)
    processes = schedule.ranks * training.data_parallel * prod(map(degrees.get, _OF_PROCESSES, (1, 1)))
    flags = [
        *(_flag(f"parallelism.{name}", value) for name, value in {**tables.parallelism, **degrees}.items()),
        *(_flag(f"training.{name}", value) for name, value in tables.training.items()),
        *(["activation-checkpoint:full"] if schedule.has(Kind.R) else []),
    ]
    lines = [
        *_comments(schedule, training, release),
        torchtitan_launch(processes, per_node),
        "TORCHTITAN_ARGS=(",
        *(f"    {flag}" for flag in flags),
        ")",
    ]
    return _written(lines, schedule, training)


def torchtitan_launch(processes: int, per_node: int) -> str:
    """Return the comment with torchrun's command line for a number of processes, as many on every node."""
    here = next(count for count in range(min(processes, per_node), 0, -1) if processes % count == 0)
    nodes = f" --nnodes {processes // here}" if processes > here else ""
    return (
        f"# torchrun --nproc-per-node {here}{nodes} -m torchtitan.train "
        '--module NAME --config NAME "${TORCHTITAN_ARGS[@]}"'
    )


def torchtitan_accumulation(training: Training, steps: int) -> tuple[str, list[str]]:
    """Return torchtitan's state in words, and the flags of a batch without a pipeline.

    Parameters
    ----------
    training
        Microbatch size, sequence length, replicas and release.
    steps
        Microbatches whose gradients are accumulated in a step.

    Raises
    ------
    InputError
        For an unknown release.
    """
    release = _release(training)
    batch = release.batch(1, steps, training).training
    return release.words, [_flag(f"training.{name}", value) for name, value in batch.items()]


def torchtitan_python(schedule: Schedule, training: Training) -> TrainerSettings:
    """Python that gives a ``Trainer.Config`` of torchtitan a schedule, and its CSV.

    Its tables are what ``ParallelismConfig`` and ``TrainingConfig`` take. See :func:`torchtitan_flags` for parameters and
    errors.
    """
    release = _release(training)
    tables = _tables(schedule, training, release)
    body = "".join(
        (
            _FUNCTION,
            _FULL_RECOMPUTATION if schedule.has(Kind.R) else "",
            _PLAIN_LOSS if _splits_last_stage(schedule) else "",
            "    return config",
        )
    )
    lines = [
        *_comments(schedule, training, release),
        *_python_table("PARALLELISM", tables.parallelism),
        *_python_table("TRAINING", tables.training),
        *body.split("\n"),
    ]
    return _written(lines, schedule, training)


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


def _release(training: Training) -> Release:
    name = LATEST if training.trainer_version is None else training.trainer_version
    minor = ".".join(name.split(".")[:2])
    if minor not in RELEASES:
        raise InputError(
            f"torchtitan {one_line(name)} is not known here: settings are for {' and '.join(RELEASES)}",
            field="trainer_version",
        )
    return RELEASES[minor]


def _tables(schedule: Schedule, training: Training, release: Release) -> Tables:
    """What is set, for a schedule and layers that torchtitan builds."""
    _require_buildable(schedule, training)
    batch = release.batch(schedule.microbatches, 1, training)
    parallelism = {
        "pipeline_parallel_degree": schedule.ranks,
        "pipeline_parallel_schedule": _NAMES[schedule.placement.name],
        "pipeline_parallel_schedule_csv": _csv_name(schedule, training),
        **batch.parallelism,
    }
    if training.data_parallel > 1:
        parallelism["data_parallel_shard_degree"] = training.data_parallel
    layers = training.layers_of(schedule.stages)
    if layers is not None:
        parallelism["module_fqns_per_model_part"] = module_names(layers)
    return Tables(parallelism=parallelism, training={**batch.training, "disable_cuda_graphs": True})


def _require_buildable(schedule: Schedule, training: Training) -> None:
    placement, layers = schedule.placement, training.layers_of(schedule.stages)
    if placement.name not in _NAMES or schedule.slices > 1:
        sequences = f"its sequences are cut into {schedule.slices}" if schedule.slices > 1 else "which is none of these"
        raise ShapeError(
            "torchtitan builds stages in a line, in a loop or on a V, of whole sequences; this schedule's placement is "
            f"{placement.name}, {sequences}"
        )
    if schedule.ranks < 2:
        raise ShapeError("torchtitan needs at least two pipeline ranks")
    if training.mtp_layers:
        raise ShapeError("torchtitan's pipelines have no place for multi-token prediction", field="mtp_layers")
    if layers is None and placement.chunks != _USUAL_CHUNKS[placement.name]:
        raise ShapeError(
            f"torchtitan makes {_USUAL_CHUNKS[placement.name]} stages a rank by itself, and this schedule has "
            f"{placement.chunks}: give the layers of each of its {schedule.stages} stages with layers_per_stage",
            field="layers_per_stage",
        )
    if not schedule.kinds.isdisjoint(HOST_KINDS):
        raise ShapeError(
            "torchtitan has no setting that copies activations of single microbatches to the host: leave offload out",
            field="offload",
        )
    recomputed = np.unique(schedule.columns.stage[schedule.where(Kind.R)]).tolist()
    if recomputed and len(recomputed) < schedule.stages:
        raise ShapeError(
            f"torchtitan recomputes on every stage or on none; this schedule does on {', '.join(map(str, recomputed))}",
            field="recompute",
        )
    empty = [stage for stage, count in enumerate(layers or ()) if not count and 0 < stage < schedule.stages - 1]
    if empty:
        raise ShapeError(
            f"torchtitan runs no stage without layers but the first and the last, which have the embedding and the head; "
            f"stage {empty[0]} has none",
            field="layers_per_stage",
        )


def module_names(layers: tuple[int, ...]) -> list[list[str]]:
    """The names of the modules of each stage, for the layers of each."""
    parts = [[f"layers.{layer}" for layer in range(*span)] for span in pairwise(accumulate(layers, initial=0))]
    parts[0].insert(0, "tok_embeddings")
    parts[-1] += ["norm", "lm_head"]
    return parts


def _csv_name(schedule: Schedule, training: Training) -> str:
    if training.csv is not None:
        return training.csv
    return f"{file_name(schedule.name or 'schedule')}.csv"


def _splits_last_stage(schedule: Schedule) -> bool:
    """Whether a backward of the last stage, where norm, head and loss are, is split."""
    return bool((schedule.columns.stage[schedule.where(Kind.I)] == schedule.stages - 1).any())


def _comments(schedule: Schedule, training: Training, release: Release) -> list[str]:
    """What must be known beside the settings."""
    placement, layers = schedule.placement, training.layers
    lines = [
        f"# {release.words}: {one_line(schedule.name or 'schedule')} on {schedule.ranks} ranks, "
        f"{schedule.stages} stages ({placement.name}, {placement.chunks} a rank), {schedule.microbatches} microbatches of "
        f"{training.microbatch_size}.",
        "# The schedule's name only says where the stages are; the CSV has the order of ops.",
    ]
    if layers is None:
        lines.append("# torchtitan splits the model by itself, with one layer less on the first and on the last stage.")
    else:
        lines.append(f"# For a model of {sum(layers)} layers.")
    if schedule.has(Kind.R):
        lines.append("# Every stage recomputes in full (FullAC), which on the command line must come last.")
    if schedule.joined.any():
        lines.append("# Overlapped pairs run one op after the other: torchtitan overlaps only its own DualPipeV's.")
    if (np.diff(order_of_losses(schedule)) < 0).any():
        lines += [
            "# Microbatches are numbered anew, in the order in which the last stage takes them, as PyTorch counts losses:",
            "# train with the CSV that is written with these settings; by another one the gradients are wrong.",
        ]
    lines += [f"# Beware: {sentence}." for sentence in _warnings(schedule)]
    return lines


def _warnings(schedule: Schedule) -> tuple[str, ...]:
    if not _splits_last_stage(schedule):
        return ()
    return (
        "with torchtitan's default loss, in chunks (ChunkedLossWrapper), norm.weight gets a wrong gradient or none where a "
        "backward of the last stage is split, as here; set config.loss = config.loss.loss_fn, plain cross entropy, in the "
        "config function, as torchtitan's llama3_debugmodel_ce_loss does",
    )


def _flag(name: str, value: Any) -> str:
    """A flag of tyro's: a truth stands alone, and of modules each stage is a word."""
    if value is True:
        return f"--{name}"
    words = [",".join(part) for part in value] if isinstance(value, list) else [str(value)]
    return " ".join([f"--{name}", *map(shlex.quote, words)])


def _python_table(name: str, table: Fields) -> list[str]:
    return [f"{name} = {{", *(f"    {key!r}: {value!r}," for key, value in table.items()), "}"]


def _written(lines: list[str], schedule: Schedule, training: Training) -> TrainerSettings:
    order = torch_csv_compute(without_recompute(schedule))
    return TrainerSettings(
        text="\n".join(lines) + "\n", files={_csv_name(schedule, training): order}, warnings=_warnings(schedule)
    )


FORMATS = (
    Format(
        name="torchtitan",
        title="torchtitan flags",
        help="The command-line flags with which torchtitan trains by the schedule's CSV, which is written too.",
        ending=".torchtitan.sh",
        media="text/x-shellscript; charset=utf-8",
        write_settings=torchtitan_flags,
    ),
    Format(
        name="torchtitan-python",
        title="torchtitan config",
        help="The same as Python, for a function of torchtitan's config registry.",
        ending=".torchtitan.py",
        media="text/x-python; charset=utf-8",
        write_settings=torchtitan_python,
    ),
)
