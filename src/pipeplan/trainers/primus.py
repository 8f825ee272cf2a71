"""Primus: an experiment file for its Megatron backend, which runs Megatron-LM's orders and zero-bubble orders of its own.

Primus generates the order of ops itself. Its own pipeline (``patch_primus_pipeline``) replaces Megatron-LM's where
``pp_algorithm`` is one of :data:`ALGORITHMS`; their orders equal those of pipeplan's strategies from some number of
microbatches on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pipeplan.formats import Format, TrainerSettings, Training
from pipeplan.foundation.errors import ShapeError
from pipeplan.model import COMPUTE_KINDS, HOST_KINDS, Schedule, among
from pipeplan.strategies import strategy
from pipeplan.trainers.layout import TrainerLayout
from pipeplan.trainers.megatron import (
    RECOMPUTED,
    commented,
    fields_of,
    global_batch,
    heading,
    needs_of,
    order_and_compute,
)
from pipeplan.trainers.megatron_layout import write_layout
from pipeplan.trainers.trainer import built_in

ALGORITHMS: Mapping[str, tuple[str, Callable[[int], int]]] = MappingProxyType(
    {
        "zb-h1": ("zero-bubble", lambda ranks: ranks),
        "zbv": ("zbv-formatted", lambda ranks: 2 * ranks - 1),
    }
)
"""Primus's name of a strategy, and from how many microbatches on the orders are equal, by the number of ranks."""


def primus_settings(schedule: Schedule, training: Training) -> TrainerSettings:
    """Return an experiment file of Primus for a schedule.

    Raises
    ------
    ShapeError
        If the schedule is neither an order of Megatron-LM's nor of Primus's pipeline.
    InputError
        If the release is unsupported.
    """
    release = TRAINER.release(training.trainer_version)
    compute = schedule.keep(among(schedule.columns.kind, (*COMPUTE_KINDS, *HOST_KINDS)))
    name = _own_strategy(compute)
    values, notes = _own_order(name) if name is not None else _order_of_megatron(compute, training)
    comments = [*heading(f"Primus {release}", compute, training), *notes]
    lines = [line for comment in comments for line in commented(comment)]
    overrides = {**_shape(compute, training), **values}
    lines += [*_HEAD, *(f"      {key}: {_written(value)}" for key, value in overrides.items())]
    return TrainerSettings(text="\n".join([*lines, ""]))


_HEAD = """# You still need to set PRIMUS_MODEL to a model of primus/configs/models/megatron, such as llama3_70B, and to add
#   the data, the tokenizer, the learning rate and the other degrees to the overrides.
work_group: ${PRIMUS_TEAM:local}
user_name: ${PRIMUS_USER:local}
exp_name: ${PRIMUS_EXP_NAME:pipeline}
workspace: ${PRIMUS_WORKSPACE:./output}
modules:
  pre_trainer:
    framework: megatron
    config: pre_trainer.yaml
    model: ${PRIMUS_MODEL}.yaml
    overrides:""".splitlines()


def _own_strategy(schedule: Schedule) -> str | None:
    """Return the strategy of :data:`ALGORITHMS` that a schedule is; None if it is not one."""
    for name, (_, least) in ALGORITHMS.items():
        rule = strategy(name)
        if schedule.microbatches < least(schedule.ranks):
            continue
        try:
            if rule(rule.shape(schedule.ranks, schedule.microbatches)) == schedule:
                return name
        except ShapeError:
            continue
    return None


def _own_order(name: str) -> tuple[dict[str, Any], list[str]]:
    """Return the keys of Primus's own pipeline, and notes."""
    algorithm, _ = ALGORITHMS[name]
    values = {"patch_primus_pipeline": True, "pp_algorithm": algorithm, "eval_iters": 0}
    return values, [
        "Primus's own pipeline does not evaluate (eval_iters: 0), and its split backwards exclude recomputation."
    ]


def _order_of_megatron(schedule: Schedule, training: Training) -> tuple[dict[str, Any], list[str]]:
    """Return the keys of an order of Megatron-LM's, and notes; messages of two interleaved ranks must not be batched."""
    try:
        _, order = order_and_compute(schedule, training)
    except ShapeError as error:
        own = ", ".join(f"{name} from {least(schedule.ranks)}" for name, (_, least) in ALGORITHMS.items())
        raise ShapeError(
            f"Primus runs Megatron-LM's orders and its own ({own} microbatches on {schedule.ranks} ranks on), not this one: "
            f"{error}",
            field=error.field,
        ) from None
    values: dict[str, Any] = {"patch_primus_pipeline": False}
    if order.group_size is not None:
        values |= {"microbatch_group_size_per_vp_stage": order.group_size, "overlap_p2p_comm": True}
    if order.overlap:
        values["overlap_moe_expert_parallel_comm"] = True
    if order.delayed_weights:
        values["delay_wgrad_compute"] = True
    if order.recompute:
        values |= RECOMPUTED
    return values, [fields_of(sentence) for sentence in needs_of(order)]


def _shape(schedule: Schedule, training: Training) -> dict[str, Any]:
    layers, chunks = training.layers_of(schedule.stages), schedule.placement.chunks
    values: dict[str, Any] = {
        "pipeline_model_parallel_size": schedule.ranks,
        "micro_batch_size": training.microbatch_size,
        "global_batch_size": global_batch(schedule, training),
    }
    if training.sequence_length is not None:
        values["seq_length"] = training.sequence_length
    if layers is not None:
        layout = write_layout(TrainerLayout(layers=layers, mtp_layers=training.mtp_layers))
        values |= {"num_layers": sum(layers), "pipeline_model_parallel_layout": layout}
    elif chunks > 1:
        values["num_virtual_stages_per_pipeline_rank"] = chunks
    return values | ({"mtp_num_layers": training.mtp_layers} if training.mtp_layers else {})


def _written(value: Any) -> str:
    """Return a value as YAML."""
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


TRAINER = built_in(
    "primus",
    formats=(
        Format(
            name="primus",
            title="Primus experiment",
            help="Experiment file with which Primus runs the same schedule on Megatron-LM: 1F1B, interleaved 1F1B, and with "
            "its own pipeline ZB-H1 and ZB-V.",
            ending=".primus.yaml",
            media="application/yaml; charset=utf-8",
            write_settings=primus_settings,
        ),
    ),
)
