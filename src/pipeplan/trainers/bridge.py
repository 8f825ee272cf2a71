"""Megatron-Bridge: a schedule as Python code that changes a recipe."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from pipeplan.formats import Format, TrainerSettings, Training
from pipeplan.foundation.errors import InputError
from pipeplan.model import Schedule, one_line, shortened
from pipeplan.trainers.layout import TrainerLayout, expression_of, layout_from, names_in, python_of
from pipeplan.trainers.megatron import (
    RECOMPUTED,
    SCHEDULES,
    MegatronOrder,
    commented,
    fields_of,
    global_batch,
    heading,
    needs_of,
    order_and_compute,
)
from pipeplan.trainers.megatron_layout import SYMBOLS, layout_of_settings, read_string, settings_in
from pipeplan.trainers.trainer import built_in

_FIELD = "pipeline_model_parallel_layout"
_PARTS = {name: name for name in SYMBOLS.values()}
"""Names of the parts of a stage, which are those of Megatron-core's ``LayerType``."""


class Code(str):
    """Python code, which stands in a program as it is."""


def assignments(part: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of code that set fields of a part of a configuration."""
    yield from (f"cfg.{part}.{name} = {_written(value)}" for name, value in values.items())


def _written(value: Any) -> str:
    """Return a value as Python code with double quotes."""
    if isinstance(value, Code):
        return value
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def pipeline_values(schedule: Schedule, order: MegatronOrder, training: Training) -> dict[str, Any]:
    """Return the fields of a model's configuration for a schedule; the other ways to divide layers are reset."""
    chunks, layers = schedule.placement.chunks, training.layers_of(schedule.stages)
    layout = None
    if layers is not None:
        layout = Code(write_layout(TrainerLayout(layers=layers, mtp_layers=training.mtp_layers)))
    values = {
        "pipeline_model_parallel_size": schedule.ranks,
        "virtual_pipeline_model_parallel_size": chunks if chunks > 1 else None,
        _FIELD: layout,
        "num_layers_in_first_pipeline_stage": None,
        "num_layers_in_last_pipeline_stage": None,
        "account_for_embedding_in_pipeline_split": False,
        "account_for_loss_in_pipeline_split": False,
        "microbatch_group_size_per_vp_stage": order.group_size,
    }
    return values | ({"mtp_num_layers": training.mtp_layers} if training.mtp_layers else {})


def messages(schedule: Schedule) -> dict[str, bool]:
    """Return the fields of ``CommOverlapConfig`` that order messages between stages.

    Batched messages of two interleaved ranks would give wrong gradients.
    """
    interleaved = schedule.placement.chunks > 1
    return {"overlap_p2p_comm": interleaved, "batch_p2p_comm": schedule.ranks > 1 and not interleaved}


def exchanges(order: MegatronOrder) -> dict[str, bool]:
    """Return the fields of ``CommOverlapConfig`` that hide exchanges with experts in pairs of a forward and a backward."""
    return {"overlap_moe_expert_parallel_comm": order.overlap, "delay_wgrad_compute": order.delayed_weights}


_IMPORT = """from megatron.bridge.training.comm_overlap import CommOverlapConfig


def scheduled(cfg):
    \"\"\"Return a ConfigContainer, such as a recipe returns, with this schedule.\"\"\"
"""


def bridge_settings(schedule: Schedule, training: Training) -> TrainerSettings:
    """Return Python code that sets a schedule in a configuration of Megatron-Bridge.

    Errors are those of :func:`~pipeplan.trainers.megatron.megatron_settings`.
    """
    release = TRAINER.release(training.trainer_version)
    compute, order = order_and_compute(schedule, training)
    layers = training.layers_of(compute.stages)
    code = [] if layers is None else [f'assert cfg.model.num_layers == {sum(layers)}, "the recipe has another model"']
    code += assignments("model", pipeline_values(compute, order, training))
    batch = {"micro_batch_size": training.microbatch_size, "global_batch_size": global_batch(compute, training)}
    code += assignments("train", batch)
    if training.sequence_length is not None:
        length = {"seq_length": training.sequence_length}
        code += [*assignments("model", length), *assignments("dataset", length)]
    if order.recompute:
        code += assignments("model", RECOMPUTED)
    else:
        code += ['if cfg.model.recompute_granularity == "full":']
        code += [f"    {line}" for line in assignments("model", dict.fromkeys(RECOMPUTED))]
    code += ["cfg.comm_overlap = cfg.comm_overlap or CommOverlapConfig(tp_comm_overlap=False)"]
    code += assignments("comm_overlap", messages(compute) | exchanges(order))
    code += ["return cfg"]
    comments = [*heading(f"Megatron-Bridge {release}", compute, training), *map(fields_of, needs_of(order))]
    lines = [line for comment in comments for line in commented(comment)]
    return TrainerSettings(text="\n".join(lines) + "\n" + _IMPORT + "".join(f"    {line}\n" for line in code))


def write_layout(layout: TrainerLayout) -> str:
    """Return the list of stages as Python code: ``[["embedding"] + ["decoder"] * 4] + [["decoder"] * 4] * 2 + ...``."""
    stages = [
        _names(decoder, mtp, first=stage == 0, last=stage == layout.stages - 1)
        for stage, (decoder, mtp) in enumerate(zip(layout.layers, layout.mtp_of_stages, strict=True))
    ]
    lists: list[str] = []
    alone: list[str] = []
    for stage, run in groupby(stages):
        if (count := len([*run])) == 1:
            alone.append(stage)
            continue
        lists += [f"[{', '.join(alone)}]"] * bool(alone) + [f"[{stage}] * {count}"]
        alone = []
    return " + ".join([*lists, *[f"[{', '.join(alone)}]"] * bool(alone)])


def _names(decoder: int, mtp: int, *, first: bool, last: bool) -> str:
    """Return the parts of a stage as a list: ``["decoder"] * 3 + ["loss"]``, or ``["decoder", "loss"]``."""
    parts = [("embedding", int(first)), ("decoder", decoder), ("mtp", mtp), ("loss", int(last))]
    held = [(name, count) for name, count in parts if count]
    if all(count == 1 for _, count in held):
        return "[" + ", ".join(f'"{name}"' for name, _ in held) + "]"
    return " + ".join(f'["{name}"]' + (f" * {count}" if count > 1 else "") for name, count in held)


def read_layout(text: str) -> TrainerLayout:
    """Return the layout of a list of stages, of a layout string, or of Python or ``key: value`` lines that set one.

    Python code is parsed and never run.

    Raises
    ------
    InputError
        If there is no layout, more than one, or one that is not a text or a list.
    """
    values = settings_in(text)
    expression = expression_of(values.get(_FIELD, text))
    if isinstance(expression, ast.List | ast.BinOp):
        return _of_list(expression, text)
    if _FIELD in values or expression is not None:
        return read_string(values.get(_FIELD, text))
    return _assigned(text)


def _of_list(expression: ast.expr, text: str) -> TrainerLayout:
    fault = f"invalid Megatron-Bridge layout {one_line(shortened(text.strip(), 60))}"
    return layout_from(names_in(expression, fault), _PARTS, fault)


def _assigned(text: str) -> TrainerLayout:
    """Return the layout that the assignments of Python code to fields of a configuration set."""
    tree = python_of(text)
    values = {} if tree is None else _assignments(tree)
    layouts = [
        value for value in values.pop(_FIELD, []) if not (isinstance(value, ast.Constant) and value.value is None)
    ]
    different = list({ast.dump(value): value for value in layouts}.values())
    if len(different) > 1:
        lines = ", ".join(str(value.lineno) for value in different)
        raise InputError(f"the code sets {len(different)} layouts (lines {lines}): choose one of them", field="layers")
    if not different:
        plain = {name: ast.unparse(found[-1]) for name, found in values.items()}
        if not plain:
            raise InputError(
                f"invalid Megatron-Bridge layout {one_line(shortened(text.strip(), 60))}: expected a list with the parts of "
                f'each stage, such as [["embedding", "decoder"], ["decoder", "loss"]], or {_FIELD} = ...',
                field="layers",
            )
        return layout_of_settings(plain)
    [value] = different
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return read_string(value.value)
    return _of_list(value, ast.unparse(value))


def _assignments(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """Return the values that code assigns to attributes, by their names."""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute | ast.Name):
                    name = target.attr if isinstance(target, ast.Attribute) else target.id
                    values.setdefault(name, []).append(node.value)
    return values


TRAINER = built_in(
    "megatron-bridge",
    schedules=SCHEDULES,
    formats=(
        Format(
            name="megatron-bridge",
            title="Megatron-Bridge config",
            help="Python code with which a recipe of Megatron-Bridge runs the same schedule: 1F1B and interleaved 1F1B.",
            ending=".bridge.py",
            media="text/x-python; charset=utf-8",
            write_settings=bridge_settings,
        ),
    ),
    write_layout=write_layout,
    parse_layout=read_layout,
    layout_mark=r"\[\s*\[\s*[\"'](?:embedding|decoder)"
    r"|(?:^|[.\s])(?:num_layers|virtual_pipeline|pipeline_model_parallel)\w*[ \t]*=(?!=)",
)
