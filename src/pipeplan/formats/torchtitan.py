"""The settings with which torchtitan trains by a schedule's CSV.

torchtitan takes from the *name* of a schedule only how many stages a rank has and where they are (``pipeline_module_split``
in its ``distributed/pipeline_parallel.py``), and the order of ops from the CSV, which is compute only: PyTorch adds the
communication. So the name must be one that has the schedule's placement, and stages and microbatches must be the CSV's.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import tomli_w

from pipeplan.errors import ShapeError
from pipeplan.formats.format import Format
from pipeplan.formats.torch_csv import torch_csv
from pipeplan.formats.training import TrainerSettings, Training
from pipeplan.model import Schedule, one_line
from pipeplan.passes import without_communication

_NAMES = {"linear": "1F1B", "loop": "Interleaved1F1B", "v": "ZBVZeroBubble"}
"""A schedule of PyTorch with each placement that torchtitan can build."""

_USUAL_CHUNKS = {"linear": 1, "loop": 2, "v": 2}
"""How many stages a rank torchtitan builds for them if nobody says otherwise."""


def torchtitan_toml(
    schedule: Schedule, csv: str, *, microbatch_size: int = 1, layers: Sequence[int] | None = None
) -> str:
    """The part of a torchtitan config file that makes it run a schedule.

    Parameters
    ----------
    schedule
        Compute ops; see :func:`~pipeplan.formats.torch_csv.torch_csv` for the CSV to go with it.
    csv
        The CSV's path on the machines that train.
    microbatch_size
        Sequences in a microbatch.
    layers
        How many transformer layers each stage has, the embedding and the output layer apart; None leaves the split to
        torchtitan.

    Raises
    ------
    ShapeError
        For a placement that torchtitan cannot build, a single rank, layers that are not one number a stage.
    """
    placement = schedule.placement
    if placement.name not in _NAMES or schedule.slices > 1:
        raise ShapeError(
            f"torchtitan builds stages in a line, in a loop or on a V, of whole sequences; this schedule's placement is "
            f"{placement.name}, its sequences are cut into {schedule.slices}"
        )
    if schedule.ranks < 2:
        raise ShapeError("torchtitan needs at least two pipeline ranks")
    if layers is not None and (len(layers) != schedule.stages or min(layers) < 0):
        raise ShapeError(f"layers must be {schedule.stages} numbers of at least 0, one per stage, not {tuple(layers)}")
    lines = [*_warnings(schedule), "", "[training]"]
    lines += [f"local_batch_size = {schedule.microbatches * microbatch_size}"]
    lines += ["", "[parallelism]", f"pipeline_parallel_degree = {schedule.ranks}"]
    lines += [f'pipeline_parallel_schedule = "{_NAMES[placement.name]}"']
    lines += [tomli_w.dumps({"pipeline_parallel_schedule_csv": csv}).strip()]
    lines += [f"pipeline_parallel_microbatch_size = {microbatch_size}"]
    lines += _split(schedule, layers)
    return "\n".join(lines) + "\n"


def _warnings(schedule: Schedule) -> list[str]:
    """What must hold beside these settings, as comments."""
    placement = schedule.placement
    lines = [
        f"# torchtitan, for the schedule {one_line(schedule.name or 'in the CSV')}: {schedule.ranks} ranks, "
        f"{schedule.stages} stages ({placement.name}), {schedule.microbatches} microbatches",
        f"# pipeline_parallel_schedule only says where the stages are ({placement.name}, {placement.chunks} a rank);",
        "# the CSV has the order of ops.",
        f"# local_batch_size / pipeline_parallel_microbatch_size must be the CSV's {schedule.microbatches} microbatches,",
        f"# and the model must be split into the CSV's {schedule.stages} stages, {placement.chunks} a rank.",
        "# PyTorch adds the communication to the CSV by its own rules; do not defer its receives (defer_pp_recv).",
    ]
    if schedule.joined.any():
        lines.append(
            "# Overlapped pairs run one op after the other: torchtitan overlaps them for DualPipeV alone, not from a CSV."
        )
    return lines


def _split(schedule: Schedule, layers: Sequence[int] | None) -> list[str]:
    """How the model is cut into stages: said in full, or left to torchtitan where it cuts into as many."""
    stages, placement = schedule.stages, schedule.placement
    if layers is not None:
        parts = [[f"layers.{layer}" for layer in range(*span)] for span in pairwise(accumulate(layers, initial=0))]
        parts[0].insert(0, "tok_embeddings")
        parts[-1] += ["norm", "output"]
        rows = ["    [" + ", ".join(f'"{module}"' for module in part) + "]," for part in parts]
        return ["module_fqns_per_model_part = [", *rows, "]"]
    if placement.chunks == _USUAL_CHUNKS[placement.name]:
        return []
    return [
        f"# For {placement.chunks} stages a rank also set pipeline_parallel_layers_per_stage, so that",
        "# ceil((layers + pipeline_parallel_first_stage_less_layers + pipeline_parallel_last_stage_less_layers)",
        f"#      / pipeline_parallel_layers_per_stage) = {stages}.",
    ]


def _settings(schedule: Schedule, training: Training) -> TrainerSettings:
    csv = training.csv or f"{schedule.name or 'schedule'}.csv"
    text = torchtitan_toml(schedule, csv, microbatch_size=training.microbatch_size, layers=training.layers)
    return TrainerSettings(text=text, files={csv: torch_csv(without_communication(schedule))})


FORMATS = (
    Format(
        name="torchtitan",
        title="torchtitan settings",
        help="The part of torchtitan's config file that makes it train with the schedule's CSV.",
        ending=".toml",
        media="application/toml",
        write_settings=_settings,
    ),
)
