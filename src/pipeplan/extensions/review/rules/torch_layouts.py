"""Rules of the layouts of torchtitan and NeMo AutoModel: layers per stage, weights of the ends, and lists of modules."""

from __future__ import annotations

from pipeplan.extensions.review.facts import ReviewFacts
from pipeplan.extensions.review.rule import RuleRow
from pipeplan.extensions.review.stages import torch_stages

_TITAN = "torchtitan torchtitan/distributed/pipeline_parallel.py"


def _cut_by_layers(c: ReviewFacts) -> bool:
    """Return True if a pipeline is cut by the number of layers per stage; a list of modules overrides it."""
    return bool(c.pp > 1 and c.layers_per_stage and not c.get("modules_per_part", None))


def _cut_by_schedule(c: ReviewFacts) -> bool:
    return bool(c.pp > 1 and not c.get("modules_per_part", None) and c.has("schedule"))


def _overfull(c: ReviewFacts) -> bool:
    weights = c.get("first_stage_less", 1) + c.get("last_stage_less", 1)
    return bool(torch_stages(c) > c.layers + weights)


def _edge_too_heavy(c: ReviewFacts) -> bool:
    least = (c.layers + c.get("first_stage_less", 1) + c.get("last_stage_less", 1)) // torch_stages(c)
    return bool(max(c.get("first_stage_less", 1), c.get("last_stage_less", 1)) > least >= 1)


# A table, read by columns: formatted, it would have a line for every argument.
# fmt: off
RULES = (
    RuleRow(
        id="titan-stages-per-rank", group="layouts", trainer="torchtitan",
        when=lambda c: _cut_by_layers(c) and torch_stages(c) % c.pp,
        message="pipeline_parallel_layers_per_stage {c.layers_per_stage} makes a number of stages that pp {c.pp} does not "
        "divide",
        remedy="use a number of layers per stage for which ceil((layers + 2) / it) is a multiple of pp",
        settings=("layers_per_stage", "pp"), repairs=("fit-layers-per-stage",),
        source=f"{_TITAN} _get_pipeline_metadata",
    ),
    RuleRow(
        id="automodel-stages-per-rank", group="layouts", trainer="nemo-automodel",
        when=lambda c: c.pp > 1 and c.layers_per_stage and c.round_stages is None and torch_stages(c) % c.pp,
        message="layers_per_stage {c.layers_per_stage} makes a number of stages that pp {c.pp} does not divide",
        remedy="set round_virtual_stages_to_pp_multiple, or another layers_per_stage",
        settings=("layers_per_stage", "pp"), repairs=("round-stages", "fit-layers-per-stage"),
        source="NeMo AutoModel components/distributed/pipelining/functional.py calculate_virtual_stages",
    ),
    RuleRow(
        id="single-schedule-stages", group="layouts", trainer="pytorch",
        when=lambda c: _cut_by_layers(c) and not c.looped
        and torch_stages(c) > c.pp,
        message="{c.schedule} takes one stage per rank, and layers_per_stage {c.layers_per_stage} makes more than pp {c.pp}",
        remedy="increase the layers per stage, or use an interleaved schedule",
        settings=("layers_per_stage", "schedule"), repairs=("fit-layers-per-stage", "interleaved"),
        source=f"{_TITAN} _get_pipeline_metadata; AutoModel calculate_virtual_stages",
    ),
    RuleRow(
        id="looped-schedule-stages", group="layouts", trainer="pytorch",
        when=lambda c: _cut_by_layers(c) and c.looped
        and c.pp <= torch_stages(c) < 2 * c.pp,
        message="{c.schedule} takes at least two stages per rank, and layers_per_stage {c.layers_per_stage} makes one",
        remedy="decrease the layers per stage, or use 1F1B",
        settings=("layers_per_stage", "schedule"), repairs=("fit-layers-per-stage",),
        source=f"{_TITAN} _get_pipeline_metadata; AutoModel calculate_virtual_stages",
    ),
    RuleRow(
        id="v-schedule-stages", group="layouts", trainer="pytorch",
        when=lambda c: c.pp > 1 and c.v_shaped and c.layers_per_stage and torch_stages(c) != 2 * c.pp
        and torch_stages(c) % c.pp == 0,
        message="{c.schedule} takes exactly two stages per rank",
        remedy="choose the layers per stage so that there are 2 x pp stages",
        settings=("layers_per_stage", "schedule"), repairs=("fit-layers-per-stage",),
        source="PyTorch torch/distributed/pipelining/schedules.py ScheduleZBVZeroBubble",
    ),
    RuleRow(
        id="more-stages-than-layers", group="layouts", trainer="torchtitan",
        when=lambda c: _cut_by_schedule(c) and _overfull(c),
        message="more stages than the {c.layers} layers and the weights of the first and last stage",
        remedy="use fewer ranks, or a single-stage schedule",
        settings=("pp", "schedule"), repairs=("single-stage",),
        source=f"{_TITAN} _generate_llm_fqn_per_model_part",
    ),
    RuleRow(
        id="automodel-more-stages-than-layers", group="layouts", trainer="nemo-automodel",
        when=lambda c: c.pp > 1 and c.has("schedule") and torch_stages(c) > c.layers,
        message="{c.schedule} on pp {c.pp} makes more stages than the {c.layers} layers",
        remedy="use fewer ranks, more layers per stage, or a single-stage schedule",
        settings=("pp", "schedule", "layers_per_stage"), repairs=("single-stage",),
        source="NeMo AutoModel components/distributed/pipelining/functional.py generate_hf_model_fqn_per_model_part",
    ),
    RuleRow(
        id="edge-weights-too-large", group="layouts", trainer="torchtitan",
        when=lambda c: _cut_by_schedule(c) and _edge_too_heavy(c),
        message="the first or last stage gives up more layers than a stage has",
        remedy="lower pipeline_parallel_first_stage_less_layers or pipeline_parallel_last_stage_less_layers",
        settings=("first_stage_less", "last_stage_less", "pp"),
        source=f"{_TITAN} _generate_llm_fqn_per_model_part",
    ),
    RuleRow(
        id="parts-per-rank", group="layouts", trainer="torchtitan",
        when=lambda c: c.pp > 1 and len(c.part_letters) % c.pp,
        message="module_fqns_per_model_part has parts that do not divide by pp {c.pp}",
        remedy="write a multiple of {c.pp} parts",
        settings=("modules_per_part", "pp"), repairs=("balanced-parts",),
        source=f"{_TITAN} _get_pp_rank_to_stage_indices_mapping",
    ),
    RuleRow(
        id="parts-of-schedule", group="layouts", trainer="torchtitan",
        when=lambda c: c.pp > 1 and c.part_letters and len(c.part_letters) % c.pp == 0
        and (len(c.part_letters) > c.pp) != c.looped,
        message="{c.schedule} does not go with the number of parts in module_fqns_per_model_part on pp {c.pp}",
        remedy="write pp parts for a single-stage schedule, and at least 2 x pp for a looped one",
        settings=("modules_per_part", "schedule"), repairs=("balanced-parts",),
        source="PyTorch torch/distributed/pipelining/schedules.py PipelineScheduleMulti, PipelineScheduleSingle",
    ),
    RuleRow(
        id="parts-layers", group="layouts", trainer="torchtitan", question="right",
        when=lambda c: c.part_letters and sum(part.count("t") for part in c.part_letters) != c.layers,
        message="module_fqns_per_model_part does not hold the {c.layers} layers of the model once each",
        remedy="list every layer once",
        settings=("modules_per_part", "layers"), repairs=("balanced-parts",), source=f"{_TITAN} _split_module",
    ),
)
# fmt: on
