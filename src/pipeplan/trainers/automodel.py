"""NeMo AutoModel: the keys of its recipe's YAML file with which it trains a schedule's CSV.

As in torchtitan, the name of a schedule only sets the number of stages per rank and their placement
(``split_model_into_stages`` in its ``components/distributed/pipelining/functional.py``), and the CSV sets the order of ops.
Names of modules are those of decoder models from Hugging Face, whose rotary embedding every stage has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pipeplan.formats import Format, TrainerSettings, Training, torch_csv_warnings
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import Kind, Schedule, counted, one_line
from pipeplan.trainers.torchtitan import SCHEDULE_NAMES, csv_name, require_buildable, schedule_csv
from pipeplan.trainers.torchtitan_layout import AUTOMODEL, module_names
from pipeplan.trainers.trainer import built_in


def automodel_settings(schedule: Schedule, training: Training) -> TrainerSettings:
    """Return the keys of a recipe of NeMo AutoModel that a schedule decides, and the schedule's CSV.

    Raises
    ------
    ShapeError
        If Automodel cannot build or refuses the schedule: another placement, slices, a single rank, fewer microbatches than
        ranks, stages that need explicit layers, multi-token prediction, or recomputation on some stages.
    InputError
        If the release is unsupported.
    """
    TRAINER.release(training.trainer_version)
    require_buildable(schedule, training, TRAINER.title)
    if schedule.microbatches < schedule.ranks:
        raise ShapeError(
            f"{schedule.microbatches} microbatches are too few: {TRAINER.title} needs at least {schedule.ranks}, the ranks"
        )
    warnings = torch_csv_warnings(schedule)
    lines = [
        *_comments(schedule, training),
        *(f"# Warning: {sentence}." for sentence in warnings),
        *_keys(schedule, training),
    ]
    return TrainerSettings(text="\n".join([*lines, ""]), files=schedule_csv(schedule, training), warnings=warnings)


def _comments(schedule: Schedule, training: Training) -> Iterator[str]:
    placement = schedule.placement
    yield (
        f"# {TRAINER.title} {TRAINER.release(training.trainer_version)}: {one_line(schedule.name or 'schedule')} on "
        f"{schedule.ranks} ranks, {schedule.stages} stages ({placement.name}, {placement.chunks} per rank), "
        f"{counted(schedule.microbatches, 'microbatch')} of {training.microbatch_size}."
    )
    yield "# Merge these keys into a recipe. pp_schedule only sets the placement of stages; the CSV sets the order of ops."
    if training.layers is not None:
        yield f"# For a decoder of {sum(training.layers)} layers with the module names of Hugging Face's Llama or Qwen."
    if schedule.joined.any():
        yield "# The ops of overlapped pairs run one after the other."


def _keys(schedule: Schedule, training: Training) -> Iterator[str]:
    local = schedule.microbatches * training.microbatch_size
    yield "step_scheduler:"
    yield f"  local_batch_size: {local}"
    yield f"  global_batch_size: {local * training.data_parallel}"
    yield "distributed:"
    yield "  strategy: fsdp2"
    yield f"  pp_size: {schedule.ranks}"
    if training.data_parallel > 1:
        yield f"  dp_size: {training.data_parallel}"
    yield f"  activation_checkpointing: {str(schedule.has(Kind.R)).lower()}"
    yield "  pipeline:"
    yield f"    pp_schedule: {SCHEDULE_NAMES[schedule.placement.name]}"
    yield f"    pp_schedule_csv: {json.dumps(csv_name(schedule, training), ensure_ascii=False)}"
    yield f"    pp_microbatch_size: {training.microbatch_size}"
    layers = training.layers_of(schedule.stages)
    if layers is not None:
        yield "    module_fqns_per_model_part:"
        yield from (f"      - [{', '.join(part)}]" for part in module_names(layers, AUTOMODEL))


TRAINER = built_in(
    "nemo-automodel",
    formats=(
        Format(
            name="automodel",
            title="NeMo AutoModel recipe",
            help="Keys of a recipe with which NeMo AutoModel trains the schedule's CSV, which is also written.",
            ending=".automodel.yaml",
            media="application/yaml; charset=utf-8",
            write_settings=automodel_settings,
        ),
    ),
)
